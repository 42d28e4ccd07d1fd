"""Tables of the audit of sampler against trainer, of the ablation it asks for, and of the noise band in training."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from stepcredit.losses.agreement import STEP_METRICS, flagged
from stepcredit.reporting.csvfiles import Row, write_rows
from stepcredit.reporting.layout import RunLayout
from stepcredit.reporting.raw import read_parquet
from stepcredit.reporting.settings import TablesSettings

NORMAL_95 = 1.96
"""Half-width of a 95% interval in standard errors: tokens of a setting are thousands."""
IN_FLIGHT = "update in flight"
"""The area whose rows differ from run to run: when an update lands depends on the machine."""

METRICS = (
    "tokens",
    "mean_abs",
    "mean_abs_low",
    "mean_abs_high",
    "worst",
    "mean_ratio",
    "ratio_low",
    "ratio_high",
    "ratio_distance",
    "kl",
    "clipped",
    "effective_sample_size",
    "entropy_gap",
    "far",
    "impossible",
    "lag",
)
LARGEST = ("mean_log_ratio", "max_log_ratio", "mismatch_kl", "clipped", "far", "impossible", "lag")
"""Metrics of a training step of which a run shows the largest."""
WORDS = ("verdict", "as_known", "after_repair", "note")
ABLATION = (
    "reward",
    "mean_ratio",
    "mismatch_kl",
    "clipped",
    "masked",
    "effective_sample_size",
    "mean_log_ratio",
    "max_log_ratio",
    "far",
    "impossible",
    "entropy",
    "entropy_gap",
    "lag",
    "outside_band",
)


def parity_files(run: RunLayout, settings: TablesSettings) -> list[Path]:
    """Every raw file that these tables read beside the metrics of the arms."""
    parity = settings.parity
    return [
        *(run.parity(model) for model in parity.models),
        *(run.ablation(name) for name in parity.ablation.runs),
    ]


def write_parity_tables(run: RunLayout, settings: TablesSettings, out_dir: Path) -> None:
    """parity.csv, parity_served.csv, parity_models.csv, parity_training.csv and parity_ablation.csv.

    Raises:
        UserError: a raw file is missing or lacks a column.
    """
    rows = {model: _audited(run.parity(model)) for model in settings.parity.models}
    offline = {model: [row for row in found if row["area"] != IN_FLIGHT] for model, found in rows.items()}
    served = [{"model": model, **row} for model, found in rows.items() for row in found if row["area"] == IN_FLIGHT]
    columns = ["setting", "area", "what", "known", *METRICS, *WORDS]
    write_rows(out_dir / "parity.csv", columns, offline[settings.parity.models[0]])
    write_rows(out_dir / "parity_served.csv", ["model", *columns], served)
    short = ["model", "setting", "known", "verdict", "as_known", "mean_abs", "worst", "mean_ratio"]
    every = [{"model": model, **row} for model, found in offline.items() for row in found]
    write_rows(out_dir / "parity_models.csv", short, every)
    _write_training(run, settings, out_dir / "parity_training.csv")
    _write_ablation(run, settings, out_dir / "parity_ablation.csv")


def _audited(path: Path) -> list[Row]:
    frame = read_parquet(path, ["setting", "area", "what", "known", "mean_abs", "verdict", "note"])
    return [_row({str(key): _plain(value) for key, value in record.items()}) for record in frame.to_dict("records")]


def _row(row: Mapping[str, Any]) -> Row:
    """A row of the audit with intervals, and whether its verdict is what is known of the setting."""
    return {
        **row,
        **_interval(row, "mean_abs", "mean_abs_error", "mean_abs"),
        **_interval(row, "mean_ratio", "ratio_error", "ratio"),
        "as_known": _as_known(str(row["known"]), str(row["verdict"])),
    }


def _as_known(known: str, verdict: str) -> bool | None:
    """A bad setting is flagged (or refused by the engine), a good one is not; None where nothing is known."""
    if known == "lossy":
        return None
    caught = flagged(verdict) or verdict == "refused"
    return caught if known == "bad" else not caught


def _interval(row: Mapping[str, Any], value: str, error: str, name: str) -> Row:
    middle, half = row[value], row[error]
    if middle is None or half is None:
        return {f"{name}_low": None, f"{name}_high": None}
    return {f"{name}_low": middle - NORMAL_95 * half, f"{name}_high": middle + NORMAL_95 * half}


def _plain(value: Any) -> Any:
    return None if not isinstance(value, str) and pd.isna(value) else value


def _write_training(run: RunLayout, settings: TablesSettings, path: Path) -> None:
    """How many steps of each arm and seed left the noise band, how far the worst one went, the mean entropy gap."""
    rows: list[Row] = []
    for arm in settings.arms:
        for seed in settings.seeds_of(arm):
            frame = read_parquet(run.rl(arm, seed, "metrics"), ["step", "outside_band", *STEP_METRICS, "lag"])
            outside = frame[frame["outside_band"].astype(bool)]["step"]
            rows.append(
                {
                    "arm": arm,
                    "seed": seed,
                    "steps": len(frame),
                    "outside": len(outside),
                    "first_outside": int(outside.min()) if len(outside) else None,
                    "ratio_distance": float((frame["mean_ratio"] - 1).abs().max()),
                    "effective_sample_size": float(frame["effective_sample_size"].min()),
                    "entropy_gap": float(frame["entropy_gap"].mean()),
                    **{name: float(frame[name].max()) for name in LARGEST},
                }
            )
    write_rows(path, list(rows[0]), rows)


def _write_ablation(run: RunLayout, settings: TablesSettings, path: Path) -> None:
    """One row a run and step, with what the setting of the sampler touches."""
    rows: list[Row] = []
    for name in settings.parity.ablation.runs:
        frame = read_parquet(run.ablation(name), ["step", *ABLATION]).sort_values("step")
        rows += [_ablation_row(name, record) for record in frame.to_dict("records")]
    write_rows(path, ["run", "step", *ABLATION], rows)


def _ablation_row(name: str, record: Mapping[Any, Any]) -> Row:
    return {"run": name, "step": int(record["step"]), **{metric: float(record[metric]) for metric in ABLATION}}
