"""Figures of what training logged: seeds thin, their mean thick, smallest to largest as a band."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepcredit.evaluation.statistics import Floats
from stepcredit.reporting.accessor import Tables
from stepcredit.reporting.claims.published import Published
from stepcredit.reporting.figures.arms import RIGHT, colours_of
from stepcredit.reporting.figures.style import HALF, Drawn, canvas, label_ends, step_axis, tell_values, y_title
from stepcredit.reporting.numbers import joined
from stepcredit.reporting.palette import MUTED

SMOOTHING = 5
"""Steps of the centred running mean of the seeds and of their mean."""


def reward(tables: Tables, published: Published) -> Drawn:
    plateau = next((mark for mark in published.marks if mark.metric == "reward"), None)
    line = (plateau.value, f"plateau, {plateau.label}") if plateau else None
    return _curve(tables, "reward", "training reward, share of rollouts right", 2, line)


def length(tables: Tables, _: Published) -> Drawn:
    return _curve(tables, "length", "completion length, tokens", 0)


def well_formed(tables: Tables, _: Published) -> Drawn:
    return _curve(tables, "well_formed", "well-formed, share of rollouts", 3)


def entropy(tables: Tables, _: Published) -> Drawn:
    return _curve(tables, "entropy", "entropy, nats per token", 2)


def paragraph_length(tables: Tables, _: Published) -> Drawn:
    return _curve(tables, "paragraph_length", "tokens between blank lines", 1, arms=tables.guard_arms())


def guard_length(tables: Tables, _: Published) -> Drawn:
    return _curve(tables, "length", "completion length, tokens", 0, arms=tables.guard_arms())


def guard_reward(tables: Tables, _: Published) -> Drawn:
    return _curve(tables, "reward", "training reward, share of rollouts right", 2, arms=tables.guard_arms())


def at_cap(tables: Tables, _: Published) -> Drawn:
    return _curve(tables, "at_cap", "completions at the token cap, share", 3, arms=tables.guard_arms())


def _curve(
    tables: Tables,
    metric: str,
    title: str,
    decimals: int,
    published: tuple[float, str] | None = None,
    arms: Sequence[str] | None = None,
) -> Drawn:
    """A metric of some arms (the main ones where none are named) by step."""
    arms = [str(row["arm"]) for row in tables.main_arms()] if arms is None else arms
    colours = colours_of(tables)
    said = []
    with canvas(HALF, right=RIGHT) as (figure, axes):
        ends = []
        last = 0
        for arm in arms:
            curves = _seed_curves(tables, arm, metric)
            if not curves:
                continue
            for steps, values in curves:
                axes.plot(steps, smoothed(values), color=colours[arm], linewidth=0.5, alpha=0.55)
            steps, mean = _mean_curve(curves)
            axes.plot(steps, smoothed(mean), color=colours[arm])
            told = [
                (float(step), float(value), f"{tables.label(arm)}, step {step:.0f}: {value:.{decimals}f}")
                for step, value in zip(steps, smoothed(mean), strict=True)
                if step % SMOOTHING == 0
            ]
            tell_values(axes, told)
            last = max(last, int(steps[-1]))
            ends.append((float(smoothed(mean)[-1]), tables.label(arm), colours[arm]))
            said.append(f"{tables.label(arm)} {smoothed(mean)[-1]:.{decimals}f}")
        axes.set_xlim(0, last or 1)
        if metric == "at_cap":
            axes.set_ylim(0, max(axes.get_ylim()[1], 0.02))
        if published:
            axes.axhline(published[0], color=MUTED, linewidth=1, dashes=(3, 2))
            axes.annotate(
                published[1], (0, published[0]), xytext=(3, 3), textcoords="offset points",
                color=MUTED, fontsize=7, va="bottom",
            )  # fmt: skip
        if not ends:
            axes.annotate("not logged in this run", (0.5, 0.5), xycoords="axes fraction", ha="center", color=MUTED)
        label_ends(axes, ends, last)
        step_axis(axes)
        y_title(axes, title)
    name = metric.replace("_", "-")
    if not said:
        return Drawn(figure, f"Training {name} was not logged in this run.")
    return Drawn(figure, f"Training {name} at step {last}, mean over seeds: {joined(said)}.")


def _seed_curves(tables: Tables, arm: str, metric: str) -> list[tuple[Floats, Floats]]:
    """(steps, values) of each seed."""
    curves: dict[int, list[tuple[int, float]]] = {}
    for row in tables.rows("training_seeds", arm=arm, metric=metric):
        curves.setdefault(row["seed"], []).append((row["step"], float(row["value"])))
    return [
        (np.array([step for step, _ in points], dtype=np.float64), np.array([value for _, value in points]))
        for points in curves.values()
    ]


def _mean_curve(curves: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    shortest = min(len(steps) for steps, _ in curves)
    return curves[0][0][:shortest], np.mean([values[:shortest] for _, values in curves], axis=0)


def smoothed(values: Floats) -> Floats:
    """Running mean over a centred window, cut at the ends."""
    half = SMOOTHING // 2
    return np.array([values[max(0, index - half) : index + half + 1].mean() for index in range(len(values))])
