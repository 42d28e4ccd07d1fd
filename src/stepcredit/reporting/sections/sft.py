"""SFT and the learning-rate sweep."""

from __future__ import annotations

from stepcredit.reporting.accessor import interval_of
from stepcredit.reporting.blocks import Block, Cell, Details, Figures, Note, Section
from stepcredit.reporting.csvfiles import Row
from stepcredit.reporting.labels import metric_label, metric_unit
from stepcredit.reporting.numbers import rate, with_interval
from stepcredit.reporting.run import Run


def section(run: Run) -> Section:
    sweep = run.tables.rows("sweep", metric="pass@1")
    best = next((row for row in sweep if row["best"]), None)
    start = run.tables.interval("sft", metric="pass@1")
    formed = run.tables.interval("sft", metric="well_formed")
    answer = (
        f"After SFT {with_interval(formed, 'fraction')} of the answers are well formed and"
        f" {with_interval(start, 'fraction')} are right (pass@1)."
    )
    if best:
        answer += f" The sweep chooses a learning rate of {rate(best['learning_rate'])}{_margin(sweep, best)}."
    steps = run.config.sweep.steps
    panels = [
        run.panel("sft_loss", "SFT loss: each step thin, running median thick."),
        run.panel("sweep", f"pass@1 after {steps} RL steps, one seed, on the validation puzzles."),
    ]
    rates = [
        [
            Cell(rate(row["learning_rate"]), numeric=True),
            Cell.interval(interval_of(row), "fraction"),
            Cell("chosen" if row["best"] else ""),
        ]
        for row in sweep
    ]
    header = ["metric", "mean, interval"]
    blocks: list[Block] = [
        Figures(panels),
        run.table("sft", "The SFT checkpoint on the held-out puzzles: step 0 of every arm.", header, _sft(run)),
        Details(
            "Numbers of the sweep",
            [run.table("sweep", "pass@1 by learning rate, %.", ["learning rate", "pass@1, %", ""], rates)],
        ),
        Note("The learning rate is chosen on validation puzzles, with the baseline arm, for all arms."),
    ]
    question = "Where does RL start from, and at what learning rate?"
    return Section("sft", "SFT and learning rate", question, answer, blocks)


def _margin(sweep: list[Row], best: Row) -> str:
    """How clear the choice is: whether another rate's interval reaches the chosen one's mean."""
    near = [row for row in sweep if not row["best"] and row["high"] >= best["mean"]]
    if not near:
        return ", clear of every other one"
    rates = ", ".join(rate(row["learning_rate"]) for row in near)
    return f"; the interval of {rates} reaches its mean"


def _sft(run: Run) -> list[list[Cell]]:
    return [
        [Cell(metric_label(row["metric"])), Cell.interval(interval_of(row), metric_unit(row["metric"]))]
        for row in run.tables.rows("sft")
    ]
