"""What limits each scorer: its measured seconds, split by a small model of where they go.

On one server a batch costs `t` seconds a computed token and `s` seconds a scoring. The batched and the cached scorer
send the same scorings to the same endpoint and differ in tokens only, which gives both numbers; what a scorer takes
beyond them is its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stepcredit.reporting.csvfiles import Row
from stepcredit.reporting.numbers import count, number


@dataclass(frozen=True)
class ServerCost:
    """Seconds of a computed token, and of a scoring beside its tokens."""

    token: float
    scoring: float


def server_cost(rows: Mapping[str, Row], scorings: int) -> ServerCost | None:
    """From the batched and the cached scorer; None where one is missing or caching saved no time.

    Args:
        rows: of scoring.csv, by scorer.
        scorings: that differ, of the workload.
    """
    if not {"batched", "cached"} <= rows.keys():
        return None
    batched, cached = rows["batched"], rows["cached"]
    tokens = batched["tokens_computed"] - cached["tokens_computed"]
    seconds = batched["wall_s"] - cached["wall_s"]
    if tokens <= 0 or seconds <= 0:
        return None
    token = seconds / tokens
    return ServerCost(token, max(0.0, cached["wall_s"] - token * cached["tokens_computed"]) / scorings)


def parts(row: Row, cost: ServerCost, scorings: int) -> dict[str, float]:
    """Seconds of a scorer by what they go to."""
    computed, least, wall = row["tokens_computed"], row["tokens_minimum"], row["wall_s"]
    necessary = cost.token * min(computed, least)
    again = cost.token * max(0, computed - least)
    if row["scorer"] == "tree":
        return {
            "the tokens that have to be computed": necessary + again,
            "PyTorch's calls and dense attention, not the tokens themselves": max(0.0, wall - necessary - again),
        }
    each = min(cost.scoring * scorings, max(0.0, wall - necessary - again))
    rest = max(0.0, wall - necessary - again - each)
    answers = f"an HTTP request and an answer for each scoring ({count(row['requests'])}, {_megabytes(row['bytes'])})"
    naive = row["scorer"] == "naive"
    return {
        "the tokens that have to be computed": necessary,
        "prefixes that are computed again": again,
        "the engine's work for each scoring, whatever its length": each + (0.0 if naive else rest),
        answers: rest if naive else 0.0,
    }


def limit(row: Row, cost: ServerCost | None, scorings: int) -> str:
    """One sentence: what takes most of a scorer's time."""
    ratio = row["tokens_computed"] / row["tokens_minimum"]
    head = f"{number(row['wall_s'], 'seconds')}, {number(ratio, 'ratio')} the minimum of tokens"
    if row["scorer"] == "cached":
        least = row["tokens_minimum_blocks"] / row["tokens_minimum"]
        head += f" (no cache of whole blocks gets below {number(least, 'ratio')})"
    if cost is None:
        return f"{head}; what limits it cannot be told, as caching saved no time here."
    seconds = parts(row, cost, scorings)
    largest = max(seconds, key=lambda name: seconds[name])
    share = seconds[largest] / sum(seconds.values())
    return f"{head}; limited by {largest}: {100 * share:.0f} % of its time."


def _megabytes(size: float) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 5e4 else f"{size / 1e3:.1f} kB"
