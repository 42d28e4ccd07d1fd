"""Figures of the mismatch experiment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stepcredit.reporting.accessor import Tables, interval_of
from stepcredit.reporting.claims.published import Published
from stepcredit.reporting.csvfiles import Row
from stepcredit.reporting.figures.arms import RIGHT
from stepcredit.reporting.figures.style import HALF, Drawn, canvas, label_ends, step_axis, y_title
from stepcredit.reporting.mismatches import (
    distorting,
    main_rewards,
    method_label,
    methods_of,
    mismatch_label,
    reference,
    shown_mismatch,
)
from stepcredit.reporting.numbers import joined, number, with_interval
from stepcredit.reporting.palette import BASELINE, INK, MUTED, SERIES, arm_colours
from stepcredit.settings.mismatch import EXACT

ROLE_COLOURS = {"sampled": SERIES[0], "drawn": SERIES[1], "other": MUTED}


def accuracy(tables: Tables, _: Published) -> Drawn:
    """Final accuracy of every run, one row each, grouped by mismatch; the line is the run under an exact sampler."""
    rows = tables.rows("stability", rewards=main_rewards(tables))
    others = [row for row in rows if row["mismatch"] != EXACT]
    base = reference(tables)
    mismatches = list(dict.fromkeys(str(row["mismatch"]) for row in others))
    colours = _colours(tables)
    places: list[tuple[float, str]] = []
    said = []
    height = 0.75 + 0.17 * (len(others) + len(mismatches))
    with canvas((HALF[0] * 1.5, height), left=0.3) as (figure, axes):
        axes.axvspan(100 * base["low"], 100 * base["high"], color=BASELINE, alpha=0.11, linewidth=0)
        axes.axvline(100 * base["mean"], color=BASELINE, linewidth=1)
        y = 0.0
        for mismatch in mismatches:
            axes.annotate(
                mismatch_label(tables, mismatch), (0, y), xycoords=("axes fraction", "data"), xytext=(-6, 0),
                textcoords="offset points", ha="right", va="center", color=MUTED, fontsize=7.5, style="italic",
            )  # fmt: skip
            for row in (row for row in others if row["mismatch"] == mismatch):
                y -= 1
                colour = colours[row["method"]]
                axes.plot([100 * row["low"], 100 * row["high"]], [y, y], color=colour, linewidth=1.2)
                axes.plot([100 * row["mean"]], [y], "o", color=colour, markersize=4)
                places.append((y, method_label(tables, row["method"])))
                value = with_interval(interval_of(row), "fraction")
                said.append(f"{places[-1][1]} under {mismatch_label(tables, mismatch)} {value}")
            y -= 1.3
        axes.set_ylim(y + 0.8, 0.8)
        axes.set_yticks([place for place, _ in places], [label for _, label in places])
        axes.grid(axis="y", visible=False)
        axes.grid(axis="x", visible=True)
        axes.set_xlabel("validation puzzles answered right, %")
        y_title(axes, "line: exact sampler")
    exact = with_interval(interval_of(base), "fraction")
    return Drawn(figure, f"Final accuracy, exact sampler {exact}: {joined(said)}.")


def reward(tables: Tables, _: Published) -> Drawn:
    return _curve(tables, "reward", "training reward, share of rollouts right")


def drift_by_step(tables: Tables, _: Published) -> Drawn:
    return _curve(tables, "drift", "drift of the run's own loss")


def drift(tables: Tables, _: Published) -> Drawn:
    """Drift of every loss on the SFT model under the severest mismatch, and under an exact sampler."""
    worst = str(next(iter(distorting(tables)), {"mismatch": EXACT})["mismatch"])
    head = _default_head(tables)
    rows = tables.rows("drift", mismatch=worst, metric="drift")
    methods = [str(row["loss"]) for row in tables.rows("fingerprint")]
    found = {str(row["method"]): row for row in rows if row["head"] == head}
    said = []
    with canvas((HALF[0], 0.7 + 0.19 * len(methods)), left=0.36) as (figure, axes):
        for index, method in enumerate(methods):
            row = found[method]
            axes.plot([row["low"], row["high"]], [-index, -index], color=SERIES[0], linewidth=1.2)
            axes.plot([row["mean"]], [-index], "o", color=SERIES[0], markersize=4)
            exact = tables.row("drift", mismatch=EXACT, metric="drift", method=method, head=head)
            axes.plot([exact["mean"]], [-index], "o", color=BASELINE, markersize=4, fillstyle="none")
            said.append(f"{method_label(tables, method)} {number(row['mean'])}")
        axes.set_yticks([-index for index in range(len(methods))], [method_label(tables, m) for m in methods])
        axes.set_xlim(left=0)
        axes.margins(x=0.05)
        axes.grid(axis="y", visible=False)
        axes.grid(axis="x", visible=True)
        axes.set_xlabel("probability moved per unit of rate")
        y_title(axes, f"filled: {mismatch_label(tables, worst)}; open: exact")
    return Drawn(figure, f"Drift on the SFT model under {mismatch_label(tables, worst)}: {joined(said)}.")


def drift_by_head(tables: Tables, _: Published) -> Drawn:
    """What the tail model leaves of the drift, by the size of the head, one line a mismatch."""
    names = [str(row["mismatch"]) for row in tables.rows("stability_mismatches") if row["total_variation"] is not None]
    names = [name for name in names if name != EXACT]
    said = []
    with canvas(HALF, right=RIGHT) as (figure, axes):
        ends = []
        last = 1.0
        for index, name in enumerate(names):
            rows = sorted(tables.rows("drift", mismatch=name, method="sc", metric="share"), key=lambda row: row["head"])
            sizes, shares = [row["head"] for row in rows], [100 * row["mean"] for row in rows]
            colour = SERIES[index % len(SERIES)]
            axes.plot(sizes, shares, "-o", color=colour, markersize=3)
            ends.append((shares[-1], mismatch_label(tables, name), colour))
            last = sizes[-1]
            said.append(f"{mismatch_label(tables, name)} {number(rows[0]['mean'], 'fraction')} at {sizes[0]}")
            said.append(f"{number(rows[-1]['mean'], 'fraction')} at {last}")
        axes.set_xscale("log", base=2)
        axes.set_xlabel("tokens in the head")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        label_ends(axes, ends, last)
        y_title(axes, "drift left by score centering, % of q − p")
    return Drawn(figure, f"Drift that score centering leaves, by head size: {joined(said) or '0 mismatches measured'}.")


def fingerprint(tables: Tables, _: Published) -> Drawn:
    """The logit gradient of three losses at one token, recovered from one optimiser step."""
    rows = tables.rows("fingerprint_gradient")
    losses = list(dict.fromkeys(str(row["loss"]) for row in rows))
    said = []
    with canvas((HALF[0] * 1.7, 0.6 + 0.85 * len(losses)), left=0.03) as (figure, axes):
        for index, loss in enumerate(losses):
            base = -1.35 * index
            axes.axhline(base, color=MUTED, linewidth=0.5)
            tokens = [row for row in rows if row["loss"] == loss]
            for row in (row for row in tokens if row["moved"]):
                colour = ROLE_COLOURS[str(row["role"])]
                axes.vlines(row["token"], base, base + row["gradient"], color=colour, linewidth=2.4)
            moved = sum(bool(row["moved"]) for row in tokens)
            what = f"{method_label(tables, loss)}: {moved} of {len(tokens)} logits move"
            said.append(what)
            axes.annotate(what, (len(tokens), base + 0.5), ha="right", color=INK, fontsize=8)
        axes.set_yticks([])
        axes.grid(visible=False)
        axes.spines["left"].set_visible(False)
        axes.set_xlabel("token of the vocabulary")
        y_title(axes, "update of each logit: sampled token blue, drawn ones orange")
    return Drawn(figure, f"Recovered logit gradients: {joined(said)}.")


def _curve(tables: Tables, metric: str, title: str) -> Drawn:
    """A logged quantity by step under the mismatch that is shown, beside the run under an exact sampler."""
    rewards, base = main_rewards(tables), reference(tables)
    mismatch = shown_mismatch(tables)
    colours = _colours(tables)
    lines = [(str(base["method"]), EXACT, "exact sampler", BASELINE)]
    lines += [(name, mismatch, method_label(tables, name), colours[name]) for name in methods_of(tables, mismatch)]
    said = []
    with canvas(HALF, right=RIGHT - 0.06) as (figure, axes):
        ends = []
        last = 1
        for method, where, label, colour in lines:
            rows = tables.rows("stability_curve", rewards=rewards, mismatch=where, method=method, metric=metric)
            if not rows:
                continue
            _band(axes, rows, colour, where == EXACT)
            last = max(last, int(rows[-1]["step"]))
            ends.append((float(rows[-1]["mean"]), label, colour))
            said.append(f"{label} {number(rows[-1]['mean'])}")
        label_ends(axes, ends, last)
        step_axis(axes)
        y_title(axes, title)
    name = metric.replace("_", " ")
    return Drawn(figure, f"{name} at step {last} under {mismatch_label(tables, mismatch)}: {joined(said)}.")


def _band(axes: Any, rows: Sequence[Row], colour: str, dashed: bool) -> None:
    steps = [row["step"] for row in rows]
    low, mean, high = ([row[end] for row in rows] for end in ("low", "mean", "high"))
    axes.fill_between(steps, low, high, color=colour, alpha=0.11, linewidth=0)
    axes.plot(steps, mean, color=colour, linestyle="--" if dashed else "-")


def _colours(tables: Tables) -> dict[str, str]:
    methods = list(dict.fromkeys(str(row["method"]) for row in tables.rows("stability")))
    return arm_colours([*methods, ""], "")


def _default_head(tables: Tables) -> int:
    """The head that every loss was measured with."""
    return int(tables.rows("drift", method="reinforce")[0]["head"])
