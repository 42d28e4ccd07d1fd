"""Tables of time: seconds a step by phase, whole-step cost against the baseline, cost of the run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from stepcredit.evaluation.statistics import Floats, ratio_interval
from stepcredit.reporting.csvfiles import Row, interval_cells, write_rows
from stepcredit.reporting.layout import RunLayout
from stepcredit.reporting.raw import read_parquet
from stepcredit.reporting.settings import TablesSettings

PHASES = ("generate", "score", "train", "push", "total")
TIMING_COLUMNS = ("step", "phase", "seconds", "cpu_seconds")


def write_timing_tables(run: RunLayout, settings: TablesSettings, out_dir: Path) -> dict[str, Floats]:
    """step_time.csv, step_ratio.csv and cost.csv.

    Returns:
        For each arm the seconds of each training step (steps,), the median over its seeds.
    """
    frames = {
        arm: [read_parquet(run.rl(arm, seed, "timings"), TIMING_COLUMNS) for seed in settings.seeds_of(arm)]
        for arm in settings.arms
    }
    phases = {arm: [_phase_table(frame) for frame in frames[arm]] for arm in settings.arms}
    times: list[Row] = []
    for arm, tables in phases.items():
        median = pd.concat(tables, ignore_index=True).median()
        for phase in (phase for phase in PHASES if phase in median.index):
            key = {"arm": arm, "scorer": scorer_name(settings, arm), "phase": phase}
            times.append(key | {"seconds_per_step": float(median[phase])})
    write_rows(out_dir / "step_time.csv", ["arm", "scorer", "phase", "seconds_per_step"], times)
    totals = {arm: _totals(tables) for arm, tables in phases.items()}
    _write_ratios(totals, settings, out_dir)
    _write_cost(run, settings, frames, out_dir)
    return {arm: np.median(total, axis=0) for arm, total in totals.items()}


def scorer_name(settings: TablesSettings, arm: str) -> str:
    scorer = settings.arms[arm].scorer
    return f"{scorer.model}/{scorer.kind}" if scorer else "none"


def _phase_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Seconds of each step by phase; a step without a phase spent nothing on it."""
    table = frame.pivot_table(index="step", columns="phase", values="seconds", aggfunc="sum").fillna(0.0)
    table["total"] = table.sum(axis=1)
    return table


def _totals(tables: list[pd.DataFrame]) -> Floats:
    """(seeds, steps) seconds of each whole step."""
    steps = min(len(table) for table in tables)
    return np.stack([table["total"].to_numpy(dtype=np.float64)[:steps] for table in tables])


def _write_ratios(totals: dict[str, Floats], settings: TablesSettings, out_dir: Path) -> None:
    """Whole-step time of each arm over the baseline's, over the steps both have."""
    reference = totals[settings.baseline]
    rows: list[Row] = []
    for arm in (arm for arm in totals if arm != settings.baseline):
        steps = min(reference.shape[1], totals[arm].shape[1])
        seeds = min(len(reference), len(totals[arm]))
        ratio = ratio_interval(totals[arm][:seeds, :steps], reference[:seeds, :steps], settings.bootstrap)
        scorer = scorer_name(settings, arm)
        rows.append({"arm": arm, "scorer": scorer, **interval_cells(ratio), "seeds": seeds})
    write_rows(out_dir / "step_ratio.csv", ["arm", "scorer", "mean", "low", "high", "seeds"], rows)


def _write_cost(run: RunLayout, settings: TablesSettings, frames: dict[str, list[pd.DataFrame]], out_dir: Path) -> None:
    """Seconds of wall clock and of processor that each stage's jobs spent in their loops."""
    rates = settings.sweep.learning_rates
    stages = {
        "sft": [read_parquet(run.sft("timings"), ["seconds", "cpu_seconds"])],
        "sweep": [read_parquet(run.sweep(rate, "timings"), ["seconds", "cpu_seconds"]) for rate in rates],
        **{f"rl/{arm}": jobs for arm, jobs in frames.items()},
    }
    rows: list[Row] = [
        {
            "stage": stage,
            "jobs": len(jobs),
            "seconds": float(sum(job["seconds"].sum() for job in jobs)),
            "cpu_seconds": float(sum(job["cpu_seconds"].sum() for job in jobs)),
        }
        for stage, jobs in stages.items()
    ]
    write_rows(out_dir / "cost.csv", ["stage", "jobs", "seconds", "cpu_seconds"], rows)
