"""Scoring: what the scores cost."""

from __future__ import annotations

from stepcredit.reporting.accessor import interval_of
from stepcredit.reporting.blocks import Block, Cell, Figures, Heading, Note, Section, Table
from stepcredit.reporting.numbers import count, joined, with_interval
from stepcredit.reporting.run import Run
from stepcredit.reporting.sections import scoring_study

QUESTION = "What do the scores cost, and does a gain survive in wall-clock time?"
PHASES = ("generate", "score", "train", "push", "total")


def section(run: Run) -> Section:
    blocks: list[Block] = [
        Figures([run.panel("step_time")], "Median seconds of a training step, by phase."),
        _step_time(run),
        Figures([run.panel("pass_at_1_time")], "pass@1 against training time instead of steps."),
        Note("Seconds are wall clock on a machine that may have been busy: ratios are safer than values."),
    ]
    if run.tables.rows("wall_clock"):
        blocks += [Heading("Compared at equal time"), _wall_clock(run)]
    if run.tables.rows("deduplication"):
        blocks += [Heading("Duplicates"), _duplicates(run)]
    blocks += scoring_study.blocks(run)
    return Section("scoring", "Scoring", QUESTION, _answer(run), blocks)


def _answer(run: Run) -> str:
    said = [
        f"{with_interval(interval_of(row), 'ratio')} the time with {run.tables.label(row['arm'])}"
        for row in run.tables.rows("step_ratio")
    ]
    if not said:
        return "No arm of this run uses a scorer."
    return f"A step takes {joined(said)}, against one of {run.tables.label(run.tables.baseline())}."


def _step_time(run: Run) -> Table:
    rows = []
    for arm, settings in run.config.arms.items():
        found = {row["phase"]: row for row in run.tables.rows("step_time", arm=arm)}
        seconds = [found[phase]["seconds_per_step"] if phase in found else None for phase in PHASES]
        scorer = str(found["total"]["scorer"])
        cells = [Cell.value(value, "seconds") for value in seconds]
        rows.append([Cell(settings.label), Cell(scorer), *cells])
    return run.table("step_time", "Median seconds a step.", ["arm", "scorer", *PHASES], rows)


def _wall_clock(run: Run) -> Table:
    rows = [
        [
            Cell(run.tables.label(row["arm"])),
            Cell(str(row["step"]), numeric=True),
            Cell.value(row["seconds"], "seconds"),
            Cell(str(row["baseline_step"]), numeric=True),
            Cell.interval(interval_of(row), "difference"),
        ]
        for row in run.tables.rows("wall_clock", metric="pass@1")
    ]
    caption = (
        "pass@1 of an arm minus the baseline's at its first evaluated step that took at least as long,"
        " points with interval. Later steps of the arm have no such step."
    )
    header = ["arm", "step", "after, s", "baseline step", "pass@1, points"]
    return run.table("wall_clock", caption, header, rows)


def _duplicates(run: Run) -> Table:
    rows = [
        [
            Cell(run.tables.label(row["arm"])),
            Cell(count(row["scorings"]), numeric=True),
            Cell(count(row["unique"]), numeric=True),
            Cell.interval(interval_of(row), "fraction"),
        ]
        for row in run.tables.rows("deduplication")
    ]
    caption = "Scoring requests of all steps and seeds, and the share that repeats another of its step."
    return run.table("deduplication", caption, ["arm", "requests", "unique", "repeated, %"], rows)
