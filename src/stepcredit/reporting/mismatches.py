"""What the tables say about the mismatch experiment: which sampler is the worst, what a method is called."""

from __future__ import annotations

from stepcredit.reporting.accessor import NotRun, Tables
from stepcredit.reporting.csvfiles import Row
from stepcredit.settings.mismatch import EXACT

CENTERED = ("sc", "sc_sampled", "tis_sc", "tis_sc_sampled")
"""Methods that center scores."""


def method_label(tables: Tables, method: str) -> str:
    return str(tables.row("fingerprint", loss=method)["label"])


def mismatch_label(tables: Tables, mismatch: str) -> str:
    return str(tables.row("stability_mismatches", mismatch=mismatch)["label"])


def distorting(tables: Tables) -> list[Row]:
    """The mismatches that are there right after a push, by how far they move the sampler from the trainer, worst first.

    Total variation is measured on the SFT model.
    """
    rows = [row for row in tables.rows("stability_mismatches") if row["mismatch"] != EXACT]
    known = [row for row in rows if row["total_variation"] is not None]
    return sorted(known, key=lambda row: -row["total_variation"])


def severest(tables: Tables) -> Row:
    """The worst of them.

    Raises:
        NotRun: there is none.
    """
    rows = distorting(tables)
    if not rows:
        raise NotRun("no mismatch of this run distorts the weights or the KV cache")
    return rows[0]


def stalest(tables: Tables) -> Row:
    """The mismatch that is stale, and nothing else, for the longest time.

    Raises:
        NotRun: there is none.
    """
    rows = [
        row
        for row in tables.rows("stability_mismatches")
        if row["refresh_every"] > 1 and row["total_variation"] is None
    ]
    if not rows:
        raise NotRun("no mismatch of this run is stale alone")
    return max(rows, key=lambda row: int(row["refresh_every"]))


def shown_mismatch(tables: Tables) -> str:
    """The mismatch whose curves the report draws: the severest, or the stalest where all are stale alone."""
    try:
        return str(severest(tables)["mismatch"])
    except NotRun:
        return str(stalest(tables)["mismatch"])


def main_rewards(tables: Tables) -> str:
    """The rewards that figures and claims look at: all-positive ones, the hardest, where they were run."""
    found = [str(row["rewards"]) for row in tables.rows("stability")]
    return "raw" if "raw" in found else found[0]


def methods_of(tables: Tables, mismatch: str) -> list[str]:
    """Methods that were trained under a mismatch, in the order of the configuration."""
    return [str(row["method"]) for row in tables.rows("stability", mismatch=mismatch, rewards=main_rewards(tables))]


def reference(tables: Tables) -> Row:
    """The run under an exact sampler."""
    return tables.row("stability", mismatch=EXACT, rewards=main_rewards(tables))
