"""Figures of the audit of sampler against trainer."""

from __future__ import annotations

from typing import Any

import numpy as np

from stepcredit.losses.agreement import BROKEN_MEAN, flagged
from stepcredit.reporting.accessor import Tables
from stepcredit.reporting.claims.published import Published
from stepcredit.reporting.csvfiles import Row
from stepcredit.reporting.figures.arms import RIGHT
from stepcredit.reporting.figures.style import HALF, Drawn, canvas, label_ends, step_axis, y_title
from stepcredit.reporting.numbers import joined
from stepcredit.reporting.palette import BASELINE, MUTED, RULE, SERIES

VERDICTS = {"exact": "#009e73", "numerical noise": "#0072b2", "biased": "#d55e00", "broken": "#cc79a7"}
FLOOR = 1e-8
"""Left end of the axis (nats): what is smaller is drawn there."""
ROW = 0.155
"""Inches a setting."""


def settings(tables: Tables, _: Published) -> Drawn:
    """Mean to worst |log ratio| of each setting, coloured by verdict."""
    rows = audited(tables)
    measured = [row for row in rows if row["mean_abs"] is not None]
    with canvas((6.6, 0.9 + ROW * max(len(measured), 3)), left=0.33, right=0.86) as (figure, axes):
        axes.set_xscale("log")
        for place, row in enumerate(reversed(measured)):
            _setting(axes, row, place)
        axes.set_yticks(range(len(measured)), [str(row["setting"]) for row in reversed(measured)])
        axes.tick_params(axis="y", labelsize=7)
        axes.set_ylim(-0.7, max(len(measured), 3) - 0.3)
        axes.set_xlim(FLOOR, 20)
        axes.grid(True, axis="x", color=RULE)
        axes.grid(False, axis="y")
        axes.axvline(BROKEN_MEAN, color=MUTED, linewidth=0.8, dashes=(3, 2))
        axes.set_xlabel("|log ratio| of sampler and trainer, nats: mean (dot) to worst (line)")
        y_title(axes, "setting")
    found = [str(row["setting"]) for row in measured if flagged(str(row["verdict"]))]
    alt = (
        f"Mean and worst difference of sampler and trainer under {len(measured)} settings;"
        f" {len(found)} are flagged as biased or broken{': ' + joined(found) if found else ''}."
    )
    return Drawn(figure, alt)


def _setting(axes: Any, row: Row, place: int) -> None:
    colour = VERDICTS[str(row["verdict"])]
    mean, worst = max(float(row["mean_abs"]), FLOOR), max(float(row["worst"]), FLOOR)
    axes.plot([mean, worst], [place, place], color=colour, linewidth=1)
    axes.plot([mean], [place], color=colour, marker="o", markersize=3.5, linestyle="none")
    axes.annotate(
        str(row["verdict"]), (1, place), xycoords=("axes fraction", "data"), xytext=(4, 0), textcoords="offset points",
        color=colour, fontsize=7, va="center", annotation_clip=False,
    )  # fmt: skip


def audited(tables: Tables) -> list[Row]:
    """Rows of the first audited model, the served settings after the others."""
    served = tables.rows("parity_served")
    first = served[0]["model"] if served else None
    return [*tables.rows("parity"), *(row for row in served if row["model"] == first)]


def ablation_kl(tables: Tables, _: Published) -> Drawn:
    return _ablation(tables, "mismatch_kl", "mismatch KL, nats per token", log=True)


def ablation_reward(tables: Tables, _: Published) -> Drawn:
    return _ablation(tables, "reward", "training reward, share right", log=False)


def _ablation(tables: Tables, metric: str, title: str, log: bool) -> Drawn:
    rows = tables.rows("parity_ablation")
    runs = list(dict.fromkeys(str(row["run"]) for row in rows))
    said, ends, last = [], [], 1
    with canvas(HALF, right=RIGHT, left=0.17) as (figure, axes):
        if log:
            axes.set_yscale("log")
        for index, run in enumerate(runs):
            points = [(row["step"], row[metric]) for row in rows if row["run"] == run and row[metric] is not None]
            if not points:
                continue
            steps, values = (np.array(part, dtype=np.float64) for part in zip(*points, strict=True))
            shown = np.maximum(values, 1e-16) if log else values
            colour = BASELINE if index == 0 else SERIES[(index - 1) % len(SERIES)]
            axes.plot(steps, shown, color=colour, marker="o", markersize=2)
            ends.append((float(shown[-1]), run, colour))
            last = max(last, int(steps[-1]))
            said.append(f"{run} {values.mean():.2g}")
        axes.set_xlim(0, last)
        label_ends(axes, ends, last)
        step_axis(axes)
        y_title(axes, title)
    name = metric.replace("_", " ")
    return Drawn(figure, f"Mean {name} over {last} steps under each setting of the sampler: {joined(said)}.")
