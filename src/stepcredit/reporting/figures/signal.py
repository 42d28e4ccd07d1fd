"""Figures of the signal: the potential at a boundary against what sampling from there gives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepcredit.reporting.accessor import Tables, interval_of
from stepcredit.reporting.claims.published import Published
from stepcredit.reporting.csvfiles import Row
from stepcredit.reporting.figures.style import HALF, Drawn, canvas, y_title
from stepcredit.reporting.numbers import joined, with_interval
from stepcredit.reporting.palette import BASELINE, MUTED, SERIES

BINS = 6
"""Bins of equally many points, whose means are drawn over the points."""


def continuations(tables: Tables, _: Published) -> Drawn:
    return _scatter(tables, "continuations", "continuations that end right, %")


def answers(tables: Tables, _: Published) -> Drawn:
    return _scatter(tables, "answers", "answers right, sampled at once, %")


def _scatter(tables: Tables, against: str, title: str) -> Drawn:
    points = tables.rows("signal_points")
    said = []
    with canvas(HALF) as (figure, axes):
        for index, checkpoint in enumerate(dict.fromkeys(row["checkpoint"] for row in points)):
            rows = [row for row in points if row["checkpoint"] == checkpoint]
            colour = (BASELINE, *SERIES)[index % (1 + len(SERIES))]
            x = np.array([row["potential_frozen"] for row in rows], dtype=np.float64)
            y = 100 * np.array([row[against] for row in rows], dtype=np.float64)
            axes.plot(x, y, "o", color=colour, markersize=2.2, alpha=0.35, markeredgewidth=0)
            _means(axes, x, y, colour)
            label = f"{_name(tables, rows[0])}: {_correlation(tables, checkpoint, against)}"
            axes.annotate(
                label, (0.02, 0.98 - 0.09 * index), xycoords="axes fraction", color=colour, fontsize=7, va="top",
            )  # fmt: skip
            said.append(label)
        if not points:
            axes.annotate("no boundary to look at", (0.5, 0.5), xycoords="axes fraction", ha="center", color=MUTED)
        axes.set_ylim(-3, 118)
        axes.set_yticks([0, 25, 50, 75, 100])
        axes.set_xlabel("potential at the boundary, frozen scorer, nats")
        y_title(axes, title)
    return Drawn(figure, f"Spearman correlation of potential and success rate of {against}: {joined(said)}.")


def _means(axes: object, x: np.ndarray, y: np.ndarray, colour: str) -> None:
    order = np.argsort(x, kind="stable")
    parts: Sequence[np.ndarray] = [part for part in np.array_split(order, BINS) if len(part)]
    axes.plot(  # type: ignore[attr-defined]
        [x[part].mean() for part in parts], [y[part].mean() for part in parts], "-o", color=colour, markersize=3.5
    )


def _name(tables: Tables, row: Row) -> str:
    return "SFT" if row["checkpoint"] == "sft" else f"{tables.label(row['checkpoint'])}, step {row['step']}"


def _correlation(tables: Tables, checkpoint: str, against: str) -> str:
    row = tables.row("signal", checkpoint=checkpoint, scorer="frozen", against=against, boundaries="all")
    if row["mean"] is None or row["low"] is None:
        return "undefined"
    return with_interval(interval_of(row))
