"""How every figure looks, and how it is saved so that two builds are the same bytes."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("svg")

from markupsafe import escape
from matplotlib import pyplot as plt
from matplotlib.ticker import MaxNLocator

from stepcredit.provenance.files import atomic_path
from stepcredit.reporting.palette import INK, MUTED, RULE

HALF = (3.4, 2.55)
"""Inches of a figure of which two stand side by side."""
WIDE = (4.0, 2.3)
MARKS = "stepcredit_marks"
"""Attribute of a figure: the texts of its marks, see `tell_values`."""
STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "stepcredit",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8,
    "text.color": INK,
    "axes.labelcolor": MUTED,
    "axes.labelsize": 8,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.5,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "xtick.major.size": 3,
    "ytick.major.size": 0,
    "xtick.major.width": 0.6,
    "lines.linewidth": 1.6,
    "lines.solid_capstyle": "round",
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}


@dataclass(frozen=True)
class Drawn:
    """A finished figure and the sentence that says what it shows."""

    figure: Any
    alt: str


@contextmanager
def canvas(size: tuple[float, float], right: float = 0.97, left: float = 0.13) -> Iterator[tuple[Any, Any]]:
    """A figure with one axes, margins fixed so that figures side by side line up."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=size)
        bottom = 0.42 / size[1]
        figure.subplots_adjust(left=left, right=right, bottom=bottom, top=1 - 0.3 / size[1])
        try:
            yield figure, axes
        finally:
            plt.close(figure)


def save(figure: Any, path: Path) -> None:
    """Write an SVG without date or generator, so that the same numbers give the same bytes."""
    stream = io.StringIO()
    with plt.rc_context(STYLE):
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    for number, title in enumerate(getattr(figure, MARKS, ())):
        opening = f'<g id="{_mark_id(number)}"'
        text = text.replace(f"{opening}>", f'{opening} class="mark"><title>{escape(title)}</title>', 1)
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def tell_values(axes: Any, points: Iterable[tuple[float, float, str]]) -> None:
    """Let each point (x, y, text) of the axes tell its text to who points at it; nothing is seen of that."""
    titles: list[str] = axes.figure.__dict__.setdefault(MARKS, [])
    look = {"color": INK, "alpha": 0, "markersize": 9, "zorder": 10, "clip_on": False}
    for x, y, text in points:
        axes.plot([x], [y], "o", scalex=False, scaley=False, gid=_mark_id(len(titles)), **look)
        titles.append(text)


def _mark_id(number: int) -> str:
    return f"mark-{number}"


def y_title(axes: Any, text: str) -> None:
    """The name and unit of the y axis, horizontal above it, where it is read first."""
    axes.annotate(
        text, (0, 1), xycoords="axes fraction", xytext=(0, 9), textcoords="offset points",
        ha="left", va="center", color=MUTED, fontsize=8,
    )  # fmt: skip


def step_axis(axes: Any) -> None:
    axes.set_xlabel("optimiser step")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True, steps=[1, 2, 5, 10]))


def label_ends(axes: Any, ends: Sequence[tuple[float, str, str]], x: float) -> None:
    """Names at the right ends of lines, in their colours, moved apart where they would overlap.

    Args:
        axes: where to write; its limits must be final.
        ends: (y, name, colour) of each line.
        x: where the lines end.
    """
    logarithmic = axes.get_yscale() == "log"
    low, high = np.log10(axes.get_ylim()) if logarithmic else axes.get_ylim()
    height = axes.get_window_extent().height * 72 / axes.figure.dpi
    gap = (high - low) * 10 / height
    ordered = sorted(ends)
    places = spread([float(np.log10(y)) if logarithmic else y for y, _, _ in ordered], gap)
    for (_, name, colour), y in zip(ordered, places, strict=True):
        axes.annotate(
            name, (x, 10**y if logarithmic else y), xytext=(6, 0), textcoords="offset points", va="center", ha="left",
            color=colour, fontsize=8, annotation_clip=False,
        )  # fmt: skip


def spread(values: Sequence[float], gap: float) -> list[float]:
    """Values in increasing order, moved at least `gap` apart, each cluster about its mean."""
    clusters: list[list[float]] = []
    for value in sorted(values):
        clusters.append([value])
        while len(clusters) > 1 and _top(clusters[-2], gap) + gap > _bottom(clusters[-1], gap):
            last = clusters.pop()
            clusters[-1] += last
    return [_bottom(cluster, gap) + gap * position for cluster in clusters for position in range(len(cluster))]


def _bottom(cluster: Sequence[float], gap: float) -> float:
    return sum(cluster) / len(cluster) - gap * (len(cluster) - 1) / 2


def _top(cluster: Sequence[float], gap: float) -> float:
    return sum(cluster) / len(cluster) + gap * (len(cluster) - 1) / 2
