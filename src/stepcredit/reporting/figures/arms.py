"""Figures of the arms on the held-out puzzles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stepcredit.reporting.accessor import Tables, interval_of
from stepcredit.reporting.claims.published import Mark, Published
from stepcredit.reporting.csvfiles import Row
from stepcredit.reporting.figures.style import HALF, Drawn, canvas, label_ends, step_axis, tell_values, y_title
from stepcredit.reporting.numbers import joined, with_interval
from stepcredit.reporting.palette import MUTED, arm_colours

RIGHT = 0.74
"""Right edge of the axes: what is beyond belongs to the labels of the lines."""


def pass_at_1(tables: Tables, published: Published) -> Drawn:
    marks = [mark for mark in published.marks if mark.metric == "pass@1"]
    return _by_step(tables, "pass@1", "pass@1, % of samples right", "fraction", marks)


def pass_at_k(tables: Tables, _: Published) -> Drawn:
    metric = largest_k(tables)
    return _by_step(tables, metric, f"{metric}, % of puzzles solved", "fraction", [])


def finished(tables: Tables, _: Published) -> Drawn:
    return _by_step(tables, "finished", "completions that end before the cap, %", "fraction", [])


def length(tables: Tables, _: Published) -> Drawn:
    return _by_step(tables, "length", "mean completion length, tokens", "tokens", [])


def paired_pass_at_1(tables: Tables, _: Published) -> Drawn:
    return _paired(tables, "pass@1")


def paired_pass_at_k(tables: Tables, _: Published) -> Drawn:
    return _paired(tables, largest_k(tables))


def colours_of(tables: Tables) -> dict[str, str]:
    """The colour of each arm, the same in every figure."""
    return arm_colours([row["arm"] for row in tables.arms()], tables.baseline())


def cap_sensitivity(tables: Tables, _: Published) -> Drawn:
    """pass@1 of the last step, had the token cap been smaller."""
    colours = colours_of(tables)
    said = []
    with canvas(HALF, right=RIGHT) as (figure, axes):
        ends = []
        for arm in (row["arm"] for row in tables.main_arms()):
            rows = tables.rows("cap_sensitivity", arm=arm, metric="pass@1")
            caps = [row["cap"] for row in rows]
            low, mean, high = ([row[end] * 100 for row in rows] for end in ("low", "mean", "high"))
            axes.fill_between(caps, low, high, color=colours[arm], alpha=0.11, linewidth=0)
            axes.plot(caps, mean, "-o", color=colours[arm], markersize=3, clip_on=False)
            ends.append((mean[-1], tables.label(arm), colours[arm]))
            said.append(f"{tables.label(arm)} {with_interval(interval_of(rows[0]), 'fraction')}")
        axes.set_xlim(0, caps[-1])
        axes.margins(y=0.08)
        label_ends(axes, ends, caps[-1])
        axes.set_xlabel("token cap")
        y_title(axes, "pass@1, % of samples right")
    return Drawn(figure, f"pass@1 of the last step under a cap of {caps[0]} tokens: {joined(said)}.")


def largest_k(tables: Tables) -> str:
    """The pass@k of the largest evaluated k."""
    names = {str(row["metric"]) for row in tables.rows("arms") if str(row["metric"]).startswith("pass@")}
    return max(names, key=lambda name: int(name.removeprefix("pass@")))


def pass_at_1_by_time(tables: Tables, _: Published) -> Drawn:
    """pass@1 against the training time up to each evaluated step."""
    arms = [row["arm"] for row in tables.arms()]
    colours = arm_colours(arms, tables.baseline())
    seconds = {arm: {row["step"]: float(row["seconds"]) for row in tables.rows("elapsed", arm=arm)} for arm in arms}
    longest = max(max(times.values()) for times in seconds.values())
    said = []
    with canvas(HALF, right=RIGHT) as (figure, axes):
        ends = []
        for arm in arms:
            rows = tables.rows("arms", arm=arm, metric="pass@1")
            x = [seconds[arm][row["step"]] for row in rows]
            low, mean, high = ([row[end] * 100 for row in rows] for end in ("low", "mean", "high"))
            axes.fill_between(x, low, high, color=colours[arm], alpha=0.11, linewidth=0)
            axes.plot(x, mean, "-o", color=colours[arm], markersize=3, clip_on=False)
            ends.append((mean[-1], tables.label(arm), colours[arm]))
            said.append(f"{tables.label(arm)} {with_interval(interval_of(rows[-1]), 'fraction')} after {x[-1]:.0f} s")
        axes.set_xlim(0, longest)
        axes.margins(y=0.08)
        label_ends(axes, ends, longest)
        axes.set_xlabel("training time, s")
        y_title(axes, "pass@1, % of samples right")
    return Drawn(figure, f"pass@1 at the end of training, by its time: {joined(said)}.")


def _by_step(tables: Tables, metric: str, title: str, unit: str, marks: Sequence[Mark]) -> Drawn:
    scale = 100.0 if unit == "fraction" else 1.0
    arms = [row["arm"] for row in tables.main_arms()]
    colours = colours_of(tables)
    last = tables.steps()[-1]
    said = []
    with canvas(HALF, right=RIGHT) as (figure, axes):
        ends = []
        for arm in arms:
            rows = tables.rows("arms", arm=arm, metric=metric)
            _line(axes, rows, colours[arm], scale)
            tell_values(axes, _values(tables.label(arm), rows, scale, unit))
            ends.append((rows[-1]["mean"] * scale, tables.label(arm), colours[arm]))
            said.append(f"{tables.label(arm)} {with_interval(interval_of(rows[-1]), unit)}")
        axes.set_xlim(0, last)
        axes.margins(y=0.08)
        _marks(axes, [mark for mark in marks if mark.step in range(last + 1)], colours, last)
        if unit == "fraction":
            low, high = axes.get_ylim()
            axes.set_ylim(max(low, 0.0), min(high, 100.6))
        label_ends(axes, ends, last)
        step_axis(axes)
        y_title(axes, title)
    return Drawn(figure, f"{metric.replace('_', ' ')} at step {last}: {joined(said)}.")


def _paired(tables: Tables, metric: str) -> Drawn:
    """Each arm minus the baseline on the same puzzles, with its interval, about zero."""
    baseline = tables.baseline()
    arms = [row["arm"] for row in tables.main_arms()]
    colours = colours_of(tables)
    last = tables.steps()[-1]
    said = []
    with canvas(HALF, right=RIGHT) as (figure, axes):
        axes.axhline(0, color=colours[baseline], linewidth=1.2)
        ends = [(0.0, tables.label(baseline), colours[baseline])]
        others = [arm for arm in arms if arm != baseline]
        for index, arm in enumerate(others):
            rows = [row for row in tables.rows("paired", arm=arm, metric=metric) if row["step"] > 0]
            shift = (index - (len(others) - 1) / 2) * last * 0.025
            x = [row["step"] + shift for row in rows]
            low, mean, high = ([row[end] * 100 for row in rows] for end in ("low", "mean", "high"))
            axes.vlines(x, low, high, color=colours[arm], linewidth=1.2)
            axes.plot(x, mean, "-o", color=colours[arm], linewidth=0.7, markersize=3.5)
            told = [text for _, _, text in _values(tables.label(arm), rows, 100.0, "difference")]
            tell_values(axes, zip(x, mean, told, strict=True))
            ends.append((mean[-1], tables.label(arm), colours[arm]))
            interval = with_interval(interval_of(rows[-1]), "difference")
            said.append(f"{tables.label(arm)} minus {tables.label(baseline)} {interval}")
        axes.set_xlim(0, last * 1.04)
        axes.margins(y=0.08)
        label_ends(axes, ends, last * 1.04)
        step_axis(axes)
        y_title(axes, f"{metric} minus baseline, points")
    return Drawn(figure, f"Paired difference of {metric} at step {last}: {joined(said)}.")


def _line(axes: Any, rows: Sequence[Row], colour: str, scale: float) -> None:
    steps = [row["step"] for row in rows]
    low, mean, high = ([row[end] * scale for row in rows] for end in ("low", "mean", "high"))
    axes.fill_between(steps, low, high, color=colour, alpha=0.11, linewidth=0)
    axes.plot(steps, mean, "-o", color=colour, markersize=3, clip_on=False)


def _values(label: str, rows: Sequence[Row], scale: float, unit: str) -> list[tuple[float, float, str]]:
    """Each row as (step, scaled mean, what it says)."""
    return [
        (row["step"], row["mean"] * scale, f"{label}, step {row['step']}: {with_interval(interval_of(row), unit)}")
        for row in rows
    ]


def _marks(axes: Any, marks: Sequence[Mark], colours: dict[str, str], last: int) -> None:
    """Published values as short dashes at their step, labelled once, low on the right, where no curve is."""
    shown = [mark for mark in marks if mark.arm in colours and isinstance(mark.step, int)]
    for mark in shown:
        step = float(mark.step)
        ends = [step - last * 0.06, step + last * 0.06]
        y = mark.value * 100
        axes.plot(ends, [y, y], color=colours[mark.arm], linewidth=1.3, dashes=(2, 1.4))
    if shown:
        low, high = axes.get_ylim()
        axes.set_ylim(low - 0.12 * (high - low), high)
        axes.annotate(
            f"- - {shown[0].label}", (0.99, 0.03), xycoords="axes fraction",
            ha="right", va="bottom", color=MUTED, fontsize=7,
        )  # fmt: skip
