"""The signal: what shaping gives to which paragraph, and whether the potential means anything."""

from __future__ import annotations

from collections.abc import Sequence

from stepcredit.reporting.accessor import interval_of
from stepcredit.reporting.blocks import Block, Cell, Details, Figures, Heading, Html, Note, Prose, Section, Table
from stepcredit.reporting.csvfiles import Row
from stepcredit.reporting.labels import metric_label
from stepcredit.reporting.numbers import with_interval
from stepcredit.reporting.run import Run
from stepcredit.reporting.trace_markup import picks_markup
from stepcredit.reporting.traces import choose, read_traces

QUESTION = "What does shaping reward, and does the potential rise where the reasoning gets closer to an answer?"
OTHERS = ("after the first paragraph", "within puzzles")
PUBLISHED = "The write-up reports 0.57 for one checkpoint of another model."


def section(run: Run) -> Section:
    blocks: list[Block] = [
        Heading("Does the potential mean anything?"),
        Figures(
            [run.panel("signal_continuations"), run.panel("signal_answers")],
            "Each point a boundary of a held-out rollout; thick the means of bins of equally many points. Left, the"
            f" continuation may go on reasoning; right, the answer is sampled at once. {PUBLISHED}",
        ),
        _correlations(run, "Potential against sampled success rates.", ("all",)),
        Details(
            "The same after the first paragraph, and within puzzles",
            [_correlations(run, "After the first paragraph, and within puzzles.", OTHERS)],
        ),
        Note(
            "Intervals resample puzzles, whose boundaries share an answer bank. Within puzzles, each point is taken"
            " less its puzzle's mean: what is left is whether the potential tells the stages of a search apart, not"
            " hard puzzles from easy ones."
        ),
        *_traces(run),
    ]
    rows = run.tables.rows("potential")
    if run.tables.rows("potential", metric="potential_last"):
        blocks.append(Details("Potential and shaping over training", [_potential(run, rows)]))
    else:
        blocks.append(Prose("No rollout of this run was shaped: no group held right and wrong answers."))
    return Section("signal", "The signal", QUESTION, _answer(run), blocks)


def _answer(run: Run) -> str:
    row = next(iter(run.tables.rows("signal", checkpoint="sft", against="answers", boundaries="all")), None)
    if row is None or row["mean"] is None or row["low"] is None:
        return "No boundary of this run could be compared with sampled success rates."
    said = f"At {row['points']} boundaries of the SFT checkpoint, the potential and the success rate of answers"
    said += f" sampled at once have a Spearman correlation of {with_interval(interval_of(row))} (published: 0.57)"
    other = run.tables.row("signal", checkpoint="sft", scorer="frozen", against="continuations", boundaries="all")
    if other["mean"] is not None and other["low"] is not None:
        said += f"; with that of whole continuations it is {with_interval(interval_of(other))}"
    return f"{said}."


def _correlations(run: Run, caption: str, subsets: Sequence[str]) -> Table:
    rows = [
        [
            Cell("SFT" if row["checkpoint"] == "sft" else run.tables.label(row["checkpoint"])),
            Cell(str(row["step"]), numeric=True),
            Cell(str(row["scorer"])),
            Cell(str(row["against"])),
            Cell(str(row["boundaries"])),
            Cell("–", numeric=True) if row["low"] is None else Cell.interval(interval_of(row), "number"),
            Cell(str(row["points"]), numeric=True),
        ]
        for row in run.tables.rows("signal")
        if row["boundaries"] in subsets
    ]
    header = ["checkpoint", "step", "scorer", "success of", "boundaries", "Spearman", "points"]
    return run.table("signal", f"{caption} {PUBLISHED}", header, rows)


def _traces(run: Run) -> list[Block]:
    """Chosen rollouts of each main arm that shapes, of its first seed."""
    found = {
        arm: read_traces(run.layout.rl(arm, run.config.seeds[0], "rollouts"))
        for arm, settings in run.main_arms.items()
        if settings.shaping is not None
    }
    shown: list[Block] = []
    for arm, traces in found.items():
        if traces:
            label = run.config.arms[arm].label
            shown += [
                Heading(f"Traces of training: {label}, step {traces[0].step}"),
                Html(picks_markup(choose(traces, arm))),
            ]
    if not shown:
        return []
    return [
        *shown,
        Note(
            "Blue paragraphs were encouraged, red ones discouraged, by the number beside them: what was added to the"
            " advantage of each of their tokens. The curve is the potential from one boundary to the next, its grey"
            " line zero; the number beside it is the potential after the paragraph, in nats."
        ),
    ]


def _potential(run: Run, rows: list[Row]) -> Table:
    cells = [
        [
            Cell(run.tables.label(row["arm"])),
            Cell(metric_label(row["metric"])),
            Cell.interval(interval_of(row), "number"),
        ]
        for row in rows
    ]
    caption = "Over all training steps, with interval over seeds and steps."
    return run.table("potential", caption, ["arm", "quantity", "mean"], cells)
