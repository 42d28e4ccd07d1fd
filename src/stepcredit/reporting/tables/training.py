"""Tables of what training logged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from stepcredit.evaluation.statistics import Floats, mean_interval, ratio_interval
from stepcredit.reporting.csvfiles import Row, interval_cells, write_rows
from stepcredit.reporting.layout import RunLayout
from stepcredit.reporting.raw import read_parquet
from stepcredit.reporting.settings import TablesSettings

POTENTIAL_METRICS = (
    "shaped_rollouts",
    "shaping_mean",
    "shaping_abs",
    "potential_first",
    "potential_last",
    "potential_clipped",
)


def write_training_tables(run: RunLayout, settings: TablesSettings, out_dir: Path) -> None:
    """training.csv, training_seeds.csv, potential.csv and deduplication.csv."""
    over_seeds: list[Row] = []
    by_seed: list[Row] = []
    potential: list[Row] = []
    duplicates: list[Row] = []
    for arm in settings.arms:
        frames = [
            read_parquet(run.rl(arm, seed, "metrics"), ["step", "reward"]).sort_values("step")
            for seed in settings.seeds_of(arm)
        ]
        over_seeds += _over_seeds(arm, frames)
        for seed, frame in zip(settings.seeds_of(arm), frames, strict=True):
            by_seed += _by_seed(arm, seed, frame)
        potential += _potential(arm, frames, settings)
        duplicates += _duplicates(arm, frames, settings)
    write_rows(out_dir / "training.csv", ["arm", "step", "metric", "mean", "low", "high", "seeds"], over_seeds)
    write_rows(out_dir / "training_seeds.csv", ["arm", "seed", "step", "metric", "value"], by_seed)
    interval = ["mean", "low", "high", "seeds"]
    write_rows(out_dir / "potential.csv", ["arm", "metric", *interval], potential)
    write_rows(out_dir / "deduplication.csv", ["arm", "scorings", "unique", *interval], duplicates)


def _metrics(frame: pd.DataFrame) -> list[str]:
    """Columns that hold numbers: those of shaping are null in the other arms."""
    return [name for name in frame.columns if name != "step" and frame[name].notna().any()]


def _by_seed(arm: str, seed: int, frame: pd.DataFrame) -> list[Row]:
    return [
        {"arm": arm, "seed": seed, "step": int(step), "metric": name, "value": float(value)}
        for name in _metrics(frame)
        for step, value in zip(frame["step"], frame[name], strict=True)
        if pd.notna(value)
    ]


def _over_seeds(arm: str, frames: list[pd.DataFrame]) -> list[Row]:
    """Mean, smallest and largest value over the seeds that logged one, at each step."""
    rows: list[Row] = []
    joined = pd.concat(frames, ignore_index=True)
    for name in _metrics(joined):
        for step, values in joined.groupby("step")[name]:
            known = values.dropna().to_numpy(dtype=np.float64)
            if known.size:
                cells = {"mean": known.mean(), "low": known.min(), "high": known.max(), "seeds": known.size}
                rows.append({"arm": arm, "step": step, "metric": name, **cells})
    return rows


def _matrix(frames: list[pd.DataFrame], name: str) -> Floats | None:
    """(seeds, steps) values of a metric over the steps that every seed logged, or None if there are none."""
    if not all(name in frame.columns and frame[name].notna().any() for frame in frames):
        return None
    steps = min(len(frame) for frame in frames)
    matrix = np.stack([frame[name].to_numpy(dtype=np.float64)[:steps] for frame in frames])
    return matrix[:, ~np.isnan(matrix).any(axis=0)]


def _potential(arm: str, frames: list[pd.DataFrame], settings: TablesSettings) -> list[Row]:
    rows: list[Row] = []
    for name in POTENTIAL_METRICS:
        matrix = _matrix(frames, name)
        if matrix is not None and matrix.size:
            cells = interval_cells(mean_interval(matrix, settings.bootstrap))
            rows.append({"arm": arm, "metric": name, **cells, "seeds": len(frames)})
    return rows


def _duplicates(arm: str, frames: list[pd.DataFrame], settings: TablesSettings) -> list[Row]:
    """Share of the scoring requests of all steps that repeat another one of their step."""
    asked, unique = _matrix(frames, "scorings"), _matrix(frames, "scorings_unique")
    if asked is None or unique is None or not asked.sum():
        return []
    cells = interval_cells(ratio_interval(asked - unique, asked, settings.bootstrap))
    totals = {"scorings": int(asked.sum()), "unique": int(unique.sum())}
    return [{"arm": arm, **totals, **cells, "seeds": len(frames)}]
