"""Figure of time: what a training step spends its seconds on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stepcredit.reporting.accessor import Tables
from stepcredit.reporting.claims.published import Published
from stepcredit.reporting.figures.style import WIDE, Drawn, canvas
from stepcredit.reporting.numbers import joined, number
from stepcredit.reporting.palette import INK, MUTED, PHASES


def step_time(tables: Tables, _: Published) -> Drawn:
    """Seconds a step, by phase, one bar an arm."""
    arms = [row["arm"] for row in tables.arms()]
    seconds = {
        arm: {row["phase"]: float(row["seconds_per_step"]) for row in tables.rows("step_time", arm=arm)} for arm in arms
    }
    longest = max(arms, key=lambda arm: seconds[arm]["total"])
    height = 0.95 + 0.36 * len(arms)
    with canvas((WIDE[0], height), left=0.25, right=0.89) as (figure, axes):
        figure.subplots_adjust(bottom=0.42 / height, top=1 - 0.25 / height)
        axes.grid(axis="y", visible=False)
        places = dict(zip(arms, np.arange(len(arms))[::-1], strict=True))
        for arm in arms:
            stacked_bar(axes, seconds[arm], float(places[arm]))
        axes.set_yticks(list(places.values()), [tables.label(arm) for arm in arms])
        axes.set_xlim(0, seconds[longest]["total"] * 1.02)
        axes.set_ylim(-0.5, len(arms) - 0.5 + 0.35)
        axes.set_xlabel("seconds per step (median)")
        axes.spines["left"].set_visible(False)
        _name_phases(axes, [(float(places[arm]), seconds[arm]) for arm in arms])
    said = [f"{tables.label(arm)} {number(seconds[arm]['total'], 'seconds')}" for arm in arms]
    share = seconds[longest].get("score", 0.0) / seconds[longest]["total"]
    alt = f"Median time of a step: {joined(said)}; scoring is at most {100 * share:.0f} % of a step."
    return Drawn(figure, alt)


def stacked_bar(axes: Any, seconds: dict[str, float], place: float) -> None:
    """The phases of a step one after the other, and their sum beside them."""
    left = 0.0
    for phase, colour in PHASES.items():
        width = seconds.get(phase, 0.0)
        axes.barh(place, width, left=left, height=0.5, color=colour)
        left += width
    axes.annotate(
        f"{seconds['total']:.2f}", (left, place), xytext=(4, 0), textcoords="offset points",
        va="center", color=INK, fontsize=7.5, annotation_clip=False,
    )  # fmt: skip


def _name_phases(axes: Any, bars: Sequence[tuple[float, dict[str, float]]]) -> None:
    """The name of each phase above the topmost of `bars` (place, seconds) in which it is wide enough."""
    named: set[str] = set()
    for place, seconds in bars:
        left = 0.0
        for phase in PHASES:
            width = seconds.get(phase, 0.0)
            if width > 0.08 * seconds["total"] and phase not in named:
                named.add(phase)
                axes.annotate(
                    phase, (left, place + 0.27), va="bottom", ha="left", color=MUTED, fontsize=7.5
                )  # fmt: skip
            left += width
