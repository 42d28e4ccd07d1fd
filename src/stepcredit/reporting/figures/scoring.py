"""Figures of the scoring study: what each scorer costs, and what a training step costs with it."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

from stepcredit.reporting.accessor import Tables
from stepcredit.reporting.claims.published import Published
from stepcredit.reporting.csvfiles import Row
from stepcredit.reporting.figures.style import WIDE, Drawn, canvas
from stepcredit.reporting.figures.timing import stacked_bar
from stepcredit.reporting.labels import SCORED_MODELS
from stepcredit.reporting.numbers import joined, number
from stepcredit.reporting.palette import INK, MUTED, PHASES, SERIES


def wall(tables: Tables, _: Published) -> Drawn:
    """Seconds of each scorer on its workload, log scale, one mark a model."""
    rows = tables.rows("scoring")
    if not rows:
        return _nothing()
    scorers = list(dict.fromkeys(str(row["scorer"]) for row in rows))
    models = list(dict.fromkeys(str(row["model"]) for row in rows))
    places = dict(zip(scorers, np.arange(len(scorers))[::-1], strict=True))
    height = 0.95 + 0.3 * len(scorers)
    with canvas((WIDE[0], height), left=0.17, right=0.95) as (figure, axes):
        figure.subplots_adjust(bottom=0.42 / height, top=1 - 0.32 / height)
        axes.set_xscale("log")
        axes.grid(axis="x")
        for model, colour, above in zip(models, SERIES, (True, False), strict=False):
            found = [row for row in rows if row["model"] == model]
            x = [float(row["wall_s"]) for row in found]
            axes.plot(x, [places[row["scorer"]] for row in found], "o", color=colour, markersize=6)
            named = found[0]
            axes.annotate(
                SCORED_MODELS[model],
                (float(named["wall_s"]), places[named["scorer"]]),
                xytext=(0, 8) if above else (-8, 0),
                textcoords="offset points",
                ha="center" if above else "right",
                va="bottom" if above else "center",
                color=colour,
                fontsize=7.5,
                annotation_clip=False,
            )
        axes.set_yticks(list(places.values()), scorers)
        axes.set_ylim(-0.6, len(scorers) - 0.4)
        axes.margins(x=0.12)
        axes.xaxis.set_major_locator(LogLocator(numticks=6))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel("seconds for the workload (median, log scale)")
    return Drawn(figure, f"Seconds of each scorer: {'; '.join(_said(model, rows) for model in models)}.")


def steps(tables: Tables, _: Published) -> Drawn:
    """Seconds of a training step by phase, one bar a scorer."""
    rows = tables.rows("scoring_steps")
    variants = list(dict.fromkeys((str(row["model"]), str(row["scorer"])) for row in rows))
    if not variants:
        return _nothing()
    seconds = {
        variant: {
            str(row["phase"]): float(row["seconds_per_step"])
            for row in rows
            if (row["model"], row["scorer"]) == variant
        }
        for variant in variants
    }
    names = ["no scorer" if model == "none" else f"{model}, {scorer}" for model, scorer in variants]
    height = 0.95 + 0.24 * len(variants)
    longest = max(entry["total"] for entry in seconds.values())
    with canvas((WIDE[0], height), left=0.27, right=0.89) as (figure, axes):
        figure.subplots_adjust(bottom=0.42 / height, top=1 - 0.28 / height)
        axes.grid(axis="y", visible=False)
        places = np.arange(len(variants))[::-1].astype(float)
        for variant, place in zip(variants, places, strict=True):
            stacked_bar(axes, seconds[variant], float(place))
        axes.set_yticks(places, names)
        axes.set_xlim(0, longest * 1.02)
        axes.set_ylim(-0.6, len(variants) - 0.4)
        axes.spines["left"].set_visible(False)
        axes.set_xlabel("seconds per step (median)")
        _legend(axes)
    reference = seconds[variants[0]]["total"]
    said = [
        f"{name} {number(seconds[variant]['total'] / reference, 'ratio')}"
        for name, variant in zip(names[1:], variants[1:], strict=True)
    ]
    return Drawn(figure, f"Time of a step over one without a scorer ({number(reference, 'seconds')}): {joined(said)}.")


def _said(model: str, rows: list[Row]) -> str:
    parts = [f"{row['scorer']} {number(row['wall_s'], 'seconds')}" for row in rows if row["model"] == model]
    return f"{SCORED_MODELS[model]}: {joined(parts)}"


def _legend(axes: Any) -> None:
    """The name of each phase in its colour, above the bars."""
    for index, (phase, colour) in enumerate(PHASES.items()):
        axes.annotate(
            phase, (index / len(PHASES), 1), xycoords="axes fraction", xytext=(8, 6), textcoords="offset points",
            ha="left", va="bottom", color=MUTED, fontsize=7.5,
        )  # fmt: skip
        axes.annotate(
            "■", (index / len(PHASES), 1), xycoords="axes fraction", xytext=(0, 6), textcoords="offset points",
            ha="left", va="bottom", color=colour, fontsize=7.5,
        )  # fmt: skip


def _nothing() -> Drawn:
    """Where no group of the recorded rollouts was mixed, so that nothing had to be scored."""
    with canvas(WIDE) as (figure, axes):
        axes.annotate("0 scorings", (0.5, 0.5), xycoords="axes fraction", ha="center", color=INK)
        axes.xaxis.set_major_locator(NullLocator())
        axes.yaxis.set_major_locator(NullLocator())
    return Drawn(figure, "0 scorings: no group of the recorded rollouts holds right and wrong answers.")
