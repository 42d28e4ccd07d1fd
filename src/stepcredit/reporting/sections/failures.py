"""Failure modes and open questions."""

from __future__ import annotations

from stepcredit.reporting.accessor import interval_of
from stepcredit.reporting.blocks import Absent, Block, Cell, Details, Figures, Heading, Note, Section, Table
from stepcredit.reporting.csvfiles import Row
from stepcredit.reporting.numbers import number, with_interval
from stepcredit.reporting.run import Run
from stepcredit.settings.arm import ArmSettings

QUESTION = "What breaks the method, and what did its write-up leave open?"
OPEN = "reference answers in the bank, a moving-average scorer, sentences as steps and more"
EXTENDED = "snakemake --cores all --configfile config/extended.yaml"
SHOWN = {
    "paragraph_length": ("paragraph, tokens", "tokens"),
    "length": ("completion, tokens", "tokens"),
    "at_cap": ("at the cap, %", "fraction"),
    "reward": ("right, %", "fraction"),
}
"""Metrics of failures.csv that the page shows: column title and unit; paragraphs are those of blank lines."""


def section(run: Run) -> Section:
    blocks: list[Block] = [Heading("Gaming the steps: with and without the paragraph guard")]
    unguarded = run.tables.unguarded_arms()
    blocks += [
        Figures(
            [run.panel(name) for name in ("paragraph_length", "guard_length", "at_cap", "guard_reward")],
            "Training rollouts by step. Paragraphs are counted by blank lines, whatever the guard cuts.",
        ),
        _changes(run),
    ]
    if not unguarded:
        blocks.append(Absent("No arm of this run leaves out the paragraph guard.", EXTENDED))
    asking = {name: arm for name, arm in run.config.arms.items() if arm.question is not None}
    blocks.append(Heading("Open questions"))
    if asking:
        blocks += [_questions(run, asking), Note(_few_seeds(run, asking))]
    blocks.append(Details("More arms to run", [Absent(f"More open questions have arms: {OPEN}.", EXTENDED)]))
    return Section("failures", "Failure modes and open questions", QUESTION, _answer(run, unguarded), blocks)


def _answer(run: Run, unguarded: list[str]) -> str:
    """What became of paragraphs and reward without the guard, beside the same scorer with it."""
    if not unguarded:
        return ""
    arm = unguarded[0]
    said = []
    for name, unit in (("paragraph_length", "tokens"), ("at_cap", "fraction"), ("reward", "fraction")):
        rows = run.tables.rows("failures", arm=arm, metric=name)
        if rows:
            label = {"paragraph_length": "paragraphs", "at_cap": "the share at the cap", "reward": "reward"}[name]
            said.append(f"{label} from {number(rows[0]['early'], unit)} to {number(rows[0]['late'], unit)}")
    text = (
        f"Without the guard, over training, {'; '.join(said)}" if said else "Training without the guard logged nothing"
    )
    guarded = run.tables.rows("arm_list", scorer=run.tables.row("arm_list", arm=arm)["scorer"], question=None)
    if guarded:
        other, last = str(guarded[0]["arm"]), run.tables.steps()[-1]
        difference = run.tables.interval("pairs", arm=arm, other=other, step=last, metric="pass@1")
        text += (
            f". Its pass@1 at step {last} minus that of {run.tables.label(other)} is"
            f" {with_interval(difference, 'difference')}"
        )
    return f"{text}."


def _changes(run: Run) -> Table:
    rows = []
    for arm in run.tables.guard_arms():
        guard = run.tables.row("arm_list", arm=arm)
        said = (
            "–" if guard["credit"] == "group_advantage" else "none" if guard["guard"] is None else str(guard["guard"])
        )
        found = {row["metric"]: row for row in run.tables.rows("failures", arm=arm)}
        cells = [_change(found.get(name), unit) for name, (_, unit) in SHOWN.items()]
        rows.append([Cell(run.tables.label(arm)), Cell(said), *cells])
    caption = "Training rollouts: mean of the first five steps → mean of the last five, over seeds."
    return run.table("failures", caption, ["arm", "guard", *(title for title, _ in SHOWN.values())], rows)


def _change(row: Row | None, unit: str) -> Cell:
    if row is None:
        return Cell("–", numeric=True)
    early, late = (number(row[end], unit, suffix=False) for end in ("early", "late"))
    return Cell(f"{early} → {late}", numeric=True)


def _questions(run: Run, asking: dict[str, ArmSettings]) -> Table:
    """Each arm that asks something, at the last step, beside the baseline and the main arm with its scorer."""
    last = run.tables.steps()[-1]
    rows = []
    for arm, settings in asking.items():
        cells = [_difference(run, "paired", {"arm": arm, "step": last, "metric": "pass@1"}, "difference")]
        other = _main_like(run, settings)
        against = {"arm": arm, "other": other, "step": last}
        for metric, unit in (("pass@1", "difference"), ("finished", "difference"), ("length", "token difference")):
            cells.append(_difference(run, "pairs", against | {"metric": metric}, unit))
        rows.append([Cell(f"{settings.question} ({settings.label})"), *cells])
    header = ["question (arm)", "to baseline", "to main arm", "finished", "length"]
    caption = (
        f"Step {last}: pass@1 minus the baseline's; then pass@1, finishing share (points) and length (tokens) minus"
        " those of the main arm with the same scorer. Paired, with interval."
    )
    return run.table("pairs", caption, header, rows)


def _main_like(run: Run, settings: ArmSettings) -> str:
    """The main arm whose scorer is of the same kind, else the first main arm that shapes, else the baseline."""
    shaped = {name: arm for name, arm in run.main_arms.items() if arm.scorer}
    same = (
        n for n, arm in shaped.items() if settings.scorer and arm.scorer and arm.scorer.model == settings.scorer.model
    )
    return next(same, next(iter(shaped), run.config.baseline))


def _difference(run: Run, table: str, where: dict[str, object], unit: str) -> Cell:
    rows = run.tables.rows(table, **where)
    if not rows or rows[0]["low"] is None:
        return Cell("–", numeric=True)
    return Cell.interval(interval_of(rows[0]), unit)


def _few_seeds(run: Run, asking: dict[str, ArmSettings]) -> str:
    fewest = min(len(run.config.seeds_of(arm)) for arm in asking)
    text = "A difference whose interval crosses zero is not told apart from none."
    if fewest < 2:
        text += " An arm with one seed has an interval over puzzles alone: it says nothing about other seeds."
    return text
