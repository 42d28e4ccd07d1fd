"""Reward hacking: what an arm does to its paragraphs, with and without the guard."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from stepcredit.reporting.csvfiles import Row, write_rows
from stepcredit.reporting.layout import RunLayout
from stepcredit.reporting.raw import read_parquet
from stepcredit.reporting.settings import TablesSettings

METRICS = ("paragraph_length", "paragraphs", "length", "at_cap", "well_formed", "reward")
"""What the write-up saw change in its first runs (CPAS, "Reward hacking"); paragraphs are those of blank lines."""

WINDOW = 5
"""Steps whose mean is the beginning or the end of a run."""


def write_failures(run: RunLayout, settings: TablesSettings, out_dir: Path) -> None:
    """failures.csv: METRICS of each arm over the first and the last steps of training, over its seeds.

    `early` and `late` are means over WINDOW steps; `low` and `high` the smallest and largest `late` of a seed.
    """
    rows: list[Row] = []
    for arm, arm_settings in settings.arms.items():
        frames = [read_parquet(run.rl(arm, seed, "metrics"), ["step"]) for seed in settings.seeds_of(arm)]
        guard = arm_settings.shaping.max_paragraph_len if arm_settings.shaping else None
        key = {"arm": arm, "shaped": arm_settings.shaping is not None, "guard": guard, "seeds": len(frames)}
        rows += [key | {"metric": name} | cells for name in METRICS if (cells := _change(frames, name))]
    columns = ["arm", "shaped", "guard", "metric", "early", "late", "low", "high", "seeds"]
    write_rows(out_dir / "failures.csv", columns, rows)


def _change(frames: Sequence[pd.DataFrame], name: str) -> Row | None:
    """The mean of a metric over the first and the last steps; None where it was not logged."""
    if not all(name in frame.columns and frame[name].notna().any() for frame in frames):
        return None
    ordered = [frame.sort_values("step")[name].dropna() for frame in frames]
    late = [float(values.iloc[-WINDOW:].mean()) for values in ordered]
    early = float(np.mean([values.iloc[:WINDOW].mean() for values in ordered]))
    return {"early": early, "late": float(np.mean(late)), "low": min(late), "high": max(late)}
