"""Figures of the data, of supervised fine-tuning and of the learning-rate sweep."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.ticker import NullLocator

from stepcredit.evaluation.statistics import Floats
from stepcredit.reporting.accessor import Tables, interval_of
from stepcredit.reporting.claims.published import Published
from stepcredit.reporting.csvfiles import Row
from stepcredit.reporting.figures.style import HALF, WIDE, Drawn, canvas, step_axis, tell_values, y_title
from stepcredit.reporting.numbers import count, number, rate, with_interval
from stepcredit.reporting.palette import INK, MUTED, PHASES, SERIES

SMOOTHING = 25
"""Steps of the running median of the loss curve."""


def funnel(tables: Tables, _: Published) -> Drawn:
    """Rows read, rows dropped for each reason that occurred, rows kept."""
    rows = [row for row in tables.rows("funnel") if row["rows"]]
    read = float(rows[0]["rows"])
    height = 0.3 + 0.24 * len(rows)
    with canvas((WIDE[0], height), left=0.34, right=0.76) as (figure, axes):
        figure.subplots_adjust(bottom=0.04, top=0.97)
        axes.grid(visible=False)
        places = np.arange(len(rows))[::-1]
        colours = {"read": PHASES["generate"], "kept": SERIES[0]}
        for place, row in zip(places, rows, strict=True):
            value = float(row["rows"])
            axes.barh(place, value, height=0.62, color=colours.get(row["stage"], SERIES[1]))
            axes.annotate(
                f"{count(value)} · {100 * value / read:.1f} %", (value, place), xytext=(4, 0),
                textcoords="offset points", va="center", color=INK, fontsize=7.5, annotation_clip=False,
            )  # fmt: skip
        axes.set_yticks(places, [str(row["stage"]) for row in rows])
        axes.xaxis.set_major_locator(NullLocator())
        axes.set_xlim(0, read)
        axes.spines[["bottom", "left"]].set_visible(False)
    kept = float(rows[-1]["rows"])
    share = 100 * kept / read
    reasons = f"{len(rows) - 2} reason{'' if len(rows) == 3 else 's'} for dropping the others"
    alt = f"Of {count(read)} rows read, {count(kept)} ({share:.1f} %) are kept, with {reasons}."
    return Drawn(figure, alt)


def sft_loss(tables: Tables, _: Published) -> Drawn:
    """Loss by step: each step thin, the running median thick."""
    rows = tables.rows("sft_curve")
    steps = np.array([row["step"] for row in rows], dtype=np.float64)
    loss = np.array([row["loss"] for row in rows], dtype=np.float64)
    smooth = running_median(loss, SMOOTHING)
    with canvas(HALF) as (figure, axes):
        axes.plot(steps, loss, color=SERIES[0], linewidth=0.5, alpha=0.35)
        axes.plot(steps, smooth, color=SERIES[0])
        shown = range(0, len(steps), max(1, len(steps) // 40))
        tell_values(axes, [(steps[i], smooth[i], f"step {steps[i]:.0f}: {smooth[i]:.3f}") for i in shown])
        axes.set_ylim(bottom=0, top=float(np.quantile(loss, 0.995)) * 1.05)
        axes.set_xlim(0, steps[-1])
        axes.annotate(
            f"{smooth[-1]:.3f}", (steps[-1], smooth[-1]), xytext=(0, 6), textcoords="offset points",
            ha="right", va="bottom", color=SERIES[0],
        )  # fmt: skip
        step_axis(axes)
        y_title(axes, "loss, nats per token")
    first, last = f"{smooth[0]:.2f}", f"{smooth[-1]:.3f}"
    alt = f"SFT loss falls from {first} to {last} nats per token over {len(steps)} steps."
    return Drawn(figure, alt)


def running_median(values: Floats, width: int) -> Floats:
    """Median of the window around each value, cut at the ends."""
    half = width // 2
    return np.array([np.median(values[max(0, index - half) : index + half + 1]) for index in range(len(values))])


def sweep(tables: Tables, _: Published) -> Drawn:
    """pass@1 on the validation puzzles by learning rate, the chosen one filled."""
    rows = sorted(tables.rows("sweep", metric="pass@1"), key=lambda row: float(row["learning_rate"]))
    rates = [float(row["learning_rate"]) for row in rows]
    means = np.array([row["mean"] for row in rows], dtype=np.float64) * 100
    ends = np.array([[row["low"], row["high"]] for row in rows], dtype=np.float64).T * 100
    with canvas(HALF) as (figure, axes):
        axes.set_xscale("log")
        axes.vlines(rates, *ends, color=MUTED, linewidth=1.1)
        for value, mean, row in zip(rates, means, rows, strict=True):
            face = SERIES[0] if row["best"] else "none"
            edge = SERIES[0] if row["best"] else MUTED
            axes.plot([value], [mean], "o", markersize=5.5, markerfacecolor=face, markeredgecolor=edge)
            if row["best"]:
                axes.annotate(
                    "chosen", (value, mean), xytext=(7, 0), textcoords="offset points",
                    va="center", color=SERIES[0],
                )  # fmt: skip
        tell_values(axes, [(value, mean, _rate(row)) for value, mean, row in zip(rates, means, rows, strict=True)])
        axes.set_xticks(rates, [rate(value) for value in rates])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.margins(x=0.14)
        axes.set_xlabel("learning rate")
        y_title(axes, "pass@1 on validation puzzles, %")
    best = next((row for row in rows if row["best"]), rows[int(np.argmax(means))])
    interval = interval_of(best)
    alt = (
        f"Learning rate {rate(float(best['learning_rate']))} is chosen, with"
        f" {with_interval(interval, 'fraction')} pass@1; the rates span {_span(means)}."
    )
    return Drawn(figure, alt)


def _rate(row: Row) -> str:
    interval = interval_of(row)
    return f"learning rate {rate(float(row['learning_rate']))}: {with_interval(interval, 'fraction')}"


def _span(means: Sequence[float] | Floats) -> str:
    return f"{number(min(means) / 100, 'fraction', suffix=False)} to {number(max(means) / 100, 'fraction')}"
