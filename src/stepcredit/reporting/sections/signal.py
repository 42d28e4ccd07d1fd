"""The signal: what shaping gives to which paragraph."""

from __future__ import annotations

from stepcredit.evaluation.statistics import Interval
from stepcredit.reporting.blocks import Absent, Block, Cell, Section
from stepcredit.reporting.labels import metric_label
from stepcredit.reporting.numbers import with_interval
from stepcredit.reporting.run import Run

QUESTION = "Does the potential rise where the reasoning gets closer to an answer?"


def section(run: Run) -> Section:
    rows = run.tables.rows("potential")
    absent = Absent("The potential was not compared with sampled success rates.", run.command("signal"))
    if not rows:
        return Section("signal", "The signal", QUESTION, "", [absent])
    table = [
        [
            Cell(run.tables.label(row["arm"])),
            Cell(metric_label(row["metric"])),
            Cell.interval(Interval(row["mean"], row["low"], row["high"]), "number"),
        ]
        for row in rows
    ]
    blocks: list[Block] = [
        run.table(
            "potential",
            "Potential and shaping over all training steps, with interval over seeds and steps.",
            ["arm", "quantity", "mean"],
            table,
        ),
        absent,
    ]
    return Section("signal", "The signal", QUESTION, _answer(run), blocks)


def _answer(run: Run) -> str:
    arms = list(dict.fromkeys(row["arm"] for row in run.tables.rows("potential", metric="potential_last")))
    if not arms:
        return "No rollout of this run was shaped: no group held right and wrong answers."
    first, last = (
        run.tables.interval("potential", arm=arms[0], metric=f"potential_{end}") for end in ("first", "last")
    )
    return (
        f"In training with {run.tables.label(arms[0])}, the potential goes from {with_interval(first)} nats"
        f" before the reasoning to {with_interval(last)} nats after it."
    )
