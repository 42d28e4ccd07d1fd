"""Tables of the potential against sampled success rates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from stepcredit.evaluation.statistics import Interval, spearman_interval
from stepcredit.reporting.csvfiles import Row, interval_cells, write_rows
from stepcredit.reporting.layout import RunLayout
from stepcredit.reporting.raw import read_parquet
from stepcredit.reporting.settings import TablesSettings

COLUMNS = [
    "checkpoint",
    "step",
    "scorer",
    "against",
    "boundaries",
    "metric",
    "mean",
    "low",
    "high",
    "points",
    "puzzles",
]
POINT_COLUMNS = [
    "checkpoint", "step", "puzzle", "sample", "boundary", "boundaries", "potential_frozen", "potential_moving",
    "continuations", "finished", "answers",
]  # fmt: skip
RAW = ("puzzle", "sample", "boundary", "boundaries", "potential_frozen", "potential_moving", "continuations")
TIE = 9
"""Decimals to which differences are equal: rounding errors must not break ties."""
FEWEST = 3
"""Points below which no correlation is computed."""


def signal_files(run: RunLayout, settings: TablesSettings) -> dict[tuple[str, int], Path]:
    """The file of each (checkpoint, step): the SFT checkpoint, and the last one of each arm that was looked at."""
    last, seed = settings.evaluation.steps[-1], settings.seeds[0]
    return {("sft", 0): run.signal()} | {(arm, last): run.signal(arm, seed, last) for arm in settings.signal.arms}


def write_signal_tables(run: RunLayout, settings: TablesSettings, out_dir: Path) -> None:
    """signal.csv (Spearman's correlation) and signal_points.csv (one row a boundary).

    Intervals resample puzzles: the boundaries of one puzzle share its answer bank.
    """
    rows: list[Row] = []
    points: list[Row] = []
    for (checkpoint, step), path in signal_files(run, settings).items():
        frame = read_parquet(path, [*RAW, "successes", "finished", "answers_right"])
        key = {"checkpoint": checkpoint, "step": step}
        rates = {
            "continuations": frame["successes"] / frame["continuations"],
            "finished": frame["finished"] / frame["continuations"],
            "answers": frame["answers_right"] / frame["continuations"],
        }
        frame = frame[list(RAW)].assign(**rates)
        points += [key | {str(name): value for name, value in row.items()} for row in frame.to_dict("records")]
        for scorer in ("frozen", "moving") if step else ("frozen",):
            rows += [key | {"scorer": scorer} | row for row in _correlations(frame, f"potential_{scorer}", settings)]
    write_rows(out_dir / "signal.csv", COLUMNS, rows)
    write_rows(out_dir / "signal_points.csv", POINT_COLUMNS, points)


def _correlations(frame: pd.DataFrame, potential: str, settings: TablesSettings) -> list[Row]:
    """Of all boundaries; of those after the first paragraph; and within puzzles, each point less its puzzle's mean."""
    columns = [potential, "continuations", "answers"]
    means = frame.groupby("puzzle")[columns].transform("mean")
    subsets = {
        "all": frame,
        "after the first paragraph": frame[frame["boundary"] > 0],
        "within puzzles": frame.assign(**{name: (frame[name] - means[name]).round(TIE) for name in columns}),
    }
    return [
        {"against": against, "boundaries": name, "metric": "spearman"}
        | interval_cells(_spearman(subset, potential, against, settings))
        | {"points": len(subset), "puzzles": subset["puzzle"].nunique()}
        for against in ("continuations", "answers")
        for name, subset in subsets.items()
    ]


def _spearman(frame: pd.DataFrame, potential: str, against: str, settings: TablesSettings) -> Interval:
    if len(frame) < FEWEST:
        return Interval(np.nan, np.nan, np.nan)
    first, second = frame[potential].to_numpy(dtype=np.float64), frame[against].to_numpy(dtype=np.float64)
    return spearman_interval(first, second, settings.bootstrap, clusters=frame["puzzle"].to_numpy())
