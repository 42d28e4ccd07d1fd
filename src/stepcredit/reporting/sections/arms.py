"""Arms: does shaping help, when, and at what price in length and form?"""

from __future__ import annotations

from stepcredit.evaluation.statistics import Interval
from stepcredit.reporting.accessor import interval_of
from stepcredit.reporting.blocks import Block, Cell, Details, Figures, Heading, Note, Section, Table
from stepcredit.reporting.csvfiles import Row
from stepcredit.reporting.labels import metric_label, metric_unit
from stepcredit.reporting.numbers import joined, with_interval
from stepcredit.reporting.run import Run
from stepcredit.reporting.sections.rollouts import rollouts

METRICS = ("finished", "accuracy_of_finished", "well_formed", "length")


def section(run: Run) -> Section:
    pair = metrics(run)
    blocks: list[Block] = [
        Figures(
            [run.panel("pass_at_1"), run.panel("pass_at_4")],
            "Held-out puzzles by step: mean over seeds, band the interval. Dashed: published values of"
            " another model at another scale.",
        ),
        *(_by_step(run, metric) for metric in pair),
        Heading("Differences to the baseline, puzzle by puzzle"),
        Figures(
            [run.panel("paired_pass_at_1"), run.panel("paired_pass_at_4")],
            "Arm minus baseline on the same puzzles, with intervals; what crosses the line at zero is"
            " not told apart from no effect.",
        ),
        _paired(run, pair),
        Heading("What training saw"),
        Figures(
            [run.panel(f"training_{name}") for name in ("reward", "length", "well_formed", "entropy")],
            "Seeds thin, their mean thick, both smoothed over five steps.",
        ),
        Note(_ratio(run)),
        Heading("Form and length on held-out puzzles"),
        Figures([run.panel("heldout_finished"), run.panel("heldout_length")]),
        Details("Numbers of form and length at the last step", [_last(run)]),
        Heading("Does the token cap decide?"),
        Figures(
            [run.panel("cap_sensitivity")],
            "The completions of the last step, judged again as if the cap had been smaller: a longer one is not"
            " finished, and so not right.",
        ),
        Details("Numbers under each cap", [_caps(run)]),
        *rollouts(run),
    ]
    question = "Does paragraph-level credit learn faster or better?"
    return Section("arms", "Arms", question, _answer(run), blocks)


def metrics(run: Run) -> list[str]:
    """pass@1 and pass@k of the largest k."""
    return [f"pass@{k}" for k in sorted({1, max(run.config.evaluation.pass_k)})]


def _answer(run: Run) -> str:
    """Each shaped arm's difference at the last step, said by whether its interval excludes zero."""
    last = run.tables.steps()[-1]
    base = run.tables.interval("arms", arm=run.config.baseline, step=last, metric="pass@1")
    said = []
    for arm, settings in run.main_arms.items():
        if arm != run.config.baseline:
            difference = run.tables.interval("paired", arm=arm, step=last, metric="pass@1")
            said.append(f"{settings.label} {_effect(difference)} {with_interval(difference, 'difference')}")
    baseline = run.config.arms[run.config.baseline].label
    answer = f"At step {last} {baseline} reaches a pass@1 of {with_interval(base, 'fraction')}"
    return f"{answer}; against it, {joined(said)}." if said else f"{answer}."


def _effect(difference: Interval) -> str:
    if not difference.excludes_zero:
        return "shows no clear effect,"
    return "is ahead by" if difference.mean > 0 else "falls behind by"


def _by_step(run: Run, metric: str) -> Table:
    arms = run.main_arms
    rows = [
        [
            Cell(str(step), numeric=True),
            *(
                Cell.interval(run.tables.interval("arms", arm=arm, step=step, metric=metric), "fraction")
                for arm in arms
            ),
        ]
        for step in run.tables.steps()
    ]
    header = ["step", *(settings.label for settings in arms.values())]
    return run.table("arms", f"{metric} by step, % with interval.", header, rows)


def _paired(run: Run, pair: list[str]) -> Table:
    rows = []
    for arm, settings in run.main_arms.items():
        if arm == run.config.baseline:
            continue
        for step in (step for step in run.tables.steps() if step > 0):
            found = [run.tables.interval("paired", arm=arm, step=step, metric=metric) for metric in pair]
            apart = [metric for metric, interval in zip(pair, found, strict=True) if interval.excludes_zero]
            cells = [Cell.interval(interval, "difference") for interval in found]
            said = Cell(", ".join(apart) or "neither")
            rows.append([Cell(settings.label), Cell(str(step), numeric=True), *cells, said])
    header = ["arm", "step", *(f"{metric}, points" for metric in pair), "excludes zero"]
    return run.table("paired", "Arm minus baseline on the same puzzles, with interval.", header, rows)


def _last(run: Run) -> Table:
    last = run.tables.steps()[-1]
    rows = []
    for arm, settings in run.main_arms.items():
        found = {row["metric"]: row for row in run.tables.rows("arms", arm=arm, step=last)}
        cells = [_cell(found.get(metric), metric) for metric in METRICS]
        rows.append([Cell(settings.label), *cells])
    header = ["arm", *(metric_label(metric) for metric in METRICS)]
    return run.table("arms", f"Step {last}, with interval.", header, rows)


def _caps(run: Run) -> Table:
    """Accuracy, finishing and the difference to the baseline under each cap."""
    columns = ("pass@1", "finished", "accuracy_of_finished", "pass@1 minus baseline")
    rows = []
    for arm, settings in run.main_arms.items():
        found = {(row["cap"], row["metric"]): row for row in run.tables.rows("cap_sensitivity", arm=arm)}
        for cap in sorted({cap for cap, _ in found}):
            cells = [_cap_cell(found.get((cap, metric)), metric) for metric in columns]
            rows.append([Cell(settings.label), Cell(str(cap), numeric=True), *cells])
    header = ["arm", "cap", "pass@1, %", "finished, %", "right of finished, %", "minus baseline, points"]
    return run.table("cap_sensitivity", "The last step under smaller token caps, with interval.", header, rows)


def _cap_cell(row: Row | None, metric: str) -> Cell:
    if row is None or row["mean"] is None or row["low"] is None:
        return Cell("–", numeric=True)
    unit = "difference" if "minus" in metric else "fraction"
    return Cell.interval(interval_of(row), unit)


def _cell(row: Row | None, metric: str) -> Cell:
    if row is None or row["mean"] is None:
        return Cell("–", numeric=True)
    return Cell.interval(interval_of(row), metric_unit(metric))


def _ratio(run: Run) -> str:
    """How far from 1 the importance ratio was, and so whether masking and KL could act."""
    ratios = run.tables.rows("training", metric="mean_ratio")
    masked = run.tables.rows("training", metric="masked")
    if not ratios or not masked:
        return "No training step had an advantage other than zero: nothing was learned from."
    farthest = max(max(abs(row["low"] - 1), abs(row["high"] - 1)) for row in ratios)
    dropped = max(row["high"] for row in masked)
    text = (
        f"In no step is the mean importance ratio farther than {farthest:.1g} from 1, or the share of tokens"
        f" that the DPPO mask drops above {100 * dropped:.2g} %."
    )
    if farthest < 1e-3 and dropped < 1e-3:
        text += " With one update a batch the loss is the plain policy gradient: mask and KL term are inert."
    return text
