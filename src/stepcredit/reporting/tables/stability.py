"""Tables of the runs under a wrong sampler: where they end, against what, and how they got there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from stepcredit.evaluation.statistics import Bootstrap, Floats, Interval, mean_interval, paired_difference
from stepcredit.jobs import stability_runs
from stepcredit.reporting.csvfiles import Row, interval_cells, write_rows
from stepcredit.reporting.layout import RunLayout
from stepcredit.reporting.raw import read_evaluations, read_parquet
from stepcredit.reporting.settings import TablesSettings
from stepcredit.settings.mismatch import EXACT

COLLAPSE = 0.05
"""A run has collapsed when the whole interval of its accuracy, minus that of the SFT model, lies below minus this."""

START, REFERENCE, CENTRED = "start", "reference", "group_centred"
"""What a run is compared with, beside each other method: where it started, the run under an exact sampler, and the same
run (against its own reference) with group-centred rewards."""

CURVES = ("reward", "drift", "total_variation", "mean_ratio", "entropy", "length")
KEY = ["rewards", "mismatch", "method"]
INTERVAL = ["mean", "low", "high", "seeds"]

Key = tuple[str, str, str]
"""mismatch, method, rewards."""


def write_stability_tables(run: RunLayout, settings: TablesSettings, out_dir: Path) -> None:
    """stability.csv, stability_pairs.csv and stability_curve.csv."""
    keys = stability_runs(settings.stability)
    right = _accuracies(run, settings, keys)
    logs = {key: [_metrics(run, key, seed) for seed in settings.stability.seeds] for key in keys}
    ends: list[Row] = []
    pairs: list[Row] = []
    curves: list[Row] = []
    for key in keys:
        cells = {"mismatch": key[0], "method": key[1], "rewards": key[2], "seeds": len(settings.stability.seeds)}
        against = dict(_against(key, right, keys, settings.bootstrap))
        ends.append(
            cells
            | interval_cells(mean_interval(right[key], settings.bootstrap))
            | {"collapsed": against[START].high < -COLLAPSE}
            | {name: _mean(logs[key], name) for name in ("mean_ratio", "drift", "total_variation")}
        )
        pairs += [cells | {"other": other} | interval_cells(interval) for other, interval in against.items()]
        curves += [cells | row for row in _curves(logs[key])]
    summary = ["collapsed", "mean_ratio", "drift", "total_variation"]
    write_rows(out_dir / "stability.csv", [*KEY, *INTERVAL, *summary], ends)
    write_rows(out_dir / "stability_pairs.csv", [*KEY, "other", *INTERVAL], pairs)
    write_rows(out_dir / "stability_curve.csv", [*KEY, "step", "metric", *INTERVAL], curves)


def _accuracies(run: RunLayout, settings: TablesSettings, keys: list[Key]) -> dict[str | Key, Floats]:
    """Share of right samples, (seeds, puzzles), of the SFT model and of every run."""
    seeds = settings.stability.seeds
    paths = [run.stability_run(*key, seed, "evaluation") for key in keys for seed in seeds]
    start, *found = read_evaluations([run.stability("drift/start"), *paths], settings.stability.samples)
    at_start = np.stack([start.pass_at(1)] * len(seeds))
    by_key: dict[str | Key, Floats] = {
        key: np.stack([evaluation.pass_at(1) for evaluation in found[index * len(seeds) : (index + 1) * len(seeds)]])
        for index, key in enumerate(keys)
    }
    return {START: at_start, **by_key}


def _against(
    key: Key, right: dict[str | Key, Floats], keys: list[Key], bootstrap: Bootstrap
) -> Iterator[tuple[str, Interval]]:
    """What a run is compared with, and the paired difference."""
    mismatch, method, rewards = key
    yield START, paired_difference(right[key], right[START], bootstrap)
    reference = next(other for other in keys if other[0] == EXACT and other[2] == rewards)
    if key == reference:
        return
    yield REFERENCE, paired_difference(right[key], right[reference], bootstrap)
    for other in keys:
        if other[0] == mismatch and other[2] == rewards and other != key:
            yield other[1], paired_difference(right[key], right[other], bootstrap)
    centred = (mismatch, method, CENTRED)
    if rewards != CENTRED and centred in keys:
        its_reference = next(other for other in keys if other[0] == EXACT and other[2] == CENTRED)
        loss, its_loss = right[key] - right[reference], right[centred] - right[its_reference]
        yield CENTRED, paired_difference(loss, its_loss, bootstrap)


def _metrics(run: RunLayout, key: Key, seed: int) -> pd.DataFrame:
    return read_parquet(run.stability_run(*key, seed, "metrics"), ["step", *CURVES]).sort_values("step")


def _mean(logs: list[pd.DataFrame], name: str) -> float:
    """Over all steps and seeds that logged it."""
    return float(pd.concat(logs)[name].astype(float).mean())


def _curves(logs: list[pd.DataFrame]) -> Iterator[Row]:
    """Mean, smallest and largest value over the seeds at each step."""
    joined = pd.concat(logs)
    for name in CURVES:
        for step, values in joined.groupby("step")[name]:
            known = values.dropna().to_numpy(dtype=np.float64)
            if known.size:
                cells = {"mean": known.mean(), "low": known.min(), "high": known.max(), "seeds": known.size}
                yield {"step": step, "metric": name, **cells}
