"""The part of the scoring section that compares the scorers."""

from __future__ import annotations

from stepcredit.reporting.blocks import Absent, Block, Cell, Details, Facts, Figures, Heading, Note, Table
from stepcredit.reporting.csvfiles import Row
from stepcredit.reporting.labels import SCORED_MODELS
from stepcredit.reporting.numbers import MINUS, count, number
from stepcredit.reporting.run import Run
from stepcredit.reporting.scoring_limits import limit, server_cost

PUBLISHED_CLAIMS = {"naive": 14, "cached": 15}
"""Claims whose published minutes stand beside a scorer's."""


def blocks(run: Run) -> list[Block]:
    heading = Heading("The scorers compared")
    if not run.tables.has("scoring") or not run.tables.rows("scoring"):
        what = "No group of the recorded rollouts held right and wrong answers: there was nothing to score."
        return [heading, Absent(what, run.command("scoring"))]
    return [
        heading,
        Figures([run.panel("scoring_wall")], _workloads(run)),
        Facts([(scorer, _limit(run, scorer)) for scorer in _scorers(run)]),
        Note(
            "Seconds are split by what the batched and the cached scorer show of one server: the same scorings, other"
            " tokens. The engine's cache holds the rollouts already, as after sampling; the server's starts empty."
        ),
        _costs(run),
        Heading("In the training loop"),
        Figures([run.panel("scoring_steps")], "Median seconds of a training step with each scorer, by phase."),
        _projection(run),
        Details("Differences between scorers and between reruns", [_agreement(run)]),
    ]


def _scorers(run: Run) -> list[str]:
    return list(dict.fromkeys(str(row["scorer"]) for row in run.tables.rows("scoring")))


def _workloads(run: Run) -> str:
    said = []
    for model in dict.fromkeys(str(row["model"]) for row in run.tables.rows("scoring")):
        row = run.tables.rows("scoring_repetitions", model=model)[0]
        said.append(
            f"{SCORED_MODELS[model]}: {count(row['scorings'])} scorings of recorded rollouts, {count(row['unique'])}"
            " of them different"
        )
    return f"Every scorer on the same workload, {'; '.join(said)}."


def _limit(run: Run, scorer: str) -> str:
    """What limits a scorer, with each model it was measured with."""
    said = []
    for row in run.tables.rows("scoring", scorer=scorer):
        model = row["model"]
        unique = run.tables.rows("scoring_repetitions", model=model)[0]["unique"]
        rows = {str(other["scorer"]): other for other in run.tables.rows("scoring", model=model)}
        said.append(f"With {SCORED_MODELS[model]}: {limit(row, server_cost(rows, unique), unique)}")
    return " ".join(said)


def _costs(run: Run) -> Table:
    rows = [
        [
            Cell(SCORED_MODELS[str(row["model"])]),
            Cell(str(row["scorer"])),
            _seconds(run, row),
            Cell(count(row["requests"]), numeric=True),
            Cell(count(row["bytes"] / 1000), numeric=True),
            Cell(count(row["tokens_computed"]), numeric=True),
            Cell.value(row["tokens_computed"] / row["tokens_minimum"], "ratio"),
            Cell(count(row["tokens_cached"]), numeric=True),
            Cell(f"{row['max_abs_difference']:.0e}".replace("-", MINUS), numeric=True),
        ]
        for row in run.tables.rows("scoring")
    ]
    caption = (
        "Medians over repetitions that took turns, with the fastest and the slowest. Minimum: the tokens of the trie of"
        " all sequences. Difference: the largest to a plain float32 forward pass, in nats."
    )
    header = ["model", "scorer", "seconds", "requests", "kB back", "tokens", "× minimum", "from cache", "difference"]
    return run.table("scoring", caption, header, rows)


def _seconds(run: Run, row: Row) -> Cell:
    repeated = run.tables.row("scoring_repetitions", model=row["model"], scorer=row["scorer"])
    low, high = (number(repeated[end], "seconds", suffix=False) for end in ("wall_low", "wall_high"))
    return Cell(number(row["wall_s"], "seconds", suffix=False), f"[{low},\u00a0{high}]", numeric=True)


def _projection(run: Run) -> Table:
    claims = {claim["id"]: claim["published"] for claim in run.claims["claims"]}
    rows = []
    for row in run.tables.rows("scoring_projection"):
        published = claims.get(PUBLISHED_CLAIMS.get(str(row["scorer"]), 0), "") if row["model"] == "frozen" else ""
        ends = [number(row[end], "ratio", suffix=False) for end in ("low", "high")]
        rows.append(
            [
                Cell(str(row["model"])),
                Cell(str(row["scorer"])),
                Cell.value(1000 * row["seconds_per_scoring"], "tokens"),
                Cell.value(row["minutes"], "tokens"),
                Cell(number(row["mean"], "ratio", suffix=False), f"[{ends[0]},\u00a0{ends[1]}]", numeric=True),
                Cell(published),
            ]
        )
    caption = (
        "A run of the baseline's steps with the scoring of each scorer added, at the scorings of its first steps, and"
        " its time over the baseline's: from the median, the cheapest and the dearest timed step. Published: another"
        " model on other machines."
    )
    header = ["model", "scorer", "ms a scoring", "run, min", "over the baseline's", "published"]
    return run.table("scoring_projection", caption, header, rows)


def _agreement(run: Run) -> Table:
    rows = [
        [
            Cell(SCORED_MODELS[str(row["model"])]),
            Cell(str(row["first"])),
            Cell("itself" if row["first"] == row["second"] else str(row["second"])),
            Cell(f"{row['max_abs_difference']:.1e}".replace("-", MINUS), numeric=True),
        ]
        for row in run.tables.rows("scoring_agreement")
    ]
    caption = "Largest difference of a score between two repetitions, nats."
    return run.table("scoring_agreement", caption, ["model", "scorer", "against", "difference"], rows)
