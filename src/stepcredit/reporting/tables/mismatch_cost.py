"""Tables of what score centering costs: CPU seconds, which a busy machine hardly changes, and bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from stepcredit.evaluation.statistics import Bootstrap, Floats, ratio_interval
from stepcredit.reporting.csvfiles import Row, interval_cells, write_rows
from stepcredit.reporting.layout import RunLayout
from stepcredit.reporting.raw import read_parquet
from stepcredit.reporting.settings import TablesSettings

PLAIN, NONE = "reinforce", "none"
"""The trainer's and the sampler's variant that the others are compared with."""


def write_mismatch_cost_tables(run: RunLayout, settings: TablesSettings, out_dir: Path) -> None:
    """sampler_cost.csv and stability_cost.csv."""
    raw = read_parquet(run.stability("cost/cost"), ["part", "variant", "repeat", "cpu_seconds"])
    sampler = ["variant", "head", "draws", "seconds", "cpu_seconds", "bytes_per_token", "mean", "low", "high"]
    write_rows(out_dir / "sampler_cost.csv", sampler, _sampler(raw, settings.bootstrap))
    step = ["method", "part", "mean", "low", "high", "repeats"]
    write_rows(out_dir / "stability_cost.csv", step, _overhead(raw, settings.bootstrap))


def _sampler(raw: pd.DataFrame, bootstrap: Bootstrap) -> list[Row]:
    """Medians over the repeats; the interval is that of the CPU time over the time without any record."""
    plain = _seconds(raw, "sampler", NONE)
    rows: list[Row] = []
    for variant, found in raw[raw.part == "sampler"].groupby("variant", sort=False):
        ratio = ratio_interval(_seconds(raw, "sampler", str(variant)), plain, bootstrap)
        rows.append(
            {
                "variant": variant,
                "head": int(found["head"].iloc[0]),
                "draws": int(found["draws"].iloc[0]),
                "seconds": float(found.seconds.median()),
                "cpu_seconds": float(found.cpu_seconds.median()),
                "bytes_per_token": float(found.bytes.sum() / found.tokens.sum()),
                **interval_cells(ratio),
            }
        )
    return rows


def _overhead(raw: pd.DataFrame, bootstrap: Bootstrap) -> list[Row]:
    """Extra CPU time of sampler, trainer and both, as a share of a step of the plain policy gradient."""
    generate, train = _seconds(raw, "sampler", NONE), _seconds(raw, "trainer", PLAIN)
    recorded = raw[raw.part == "sampler"].drop_duplicates("variant").set_index(["head", "draws"])["variant"].to_dict()
    rows: list[Row] = []
    for method, found in raw[(raw.part == "trainer") & (raw.variant != PLAIN)].groupby("variant", sort=False):
        variant = recorded[int(found["head"].iloc[0]), int(found["draws"].iloc[0])]
        parts = {
            "sampler": _seconds(raw, "sampler", variant) - generate,
            "trainer": _seconds(raw, "trainer", str(method)) - train,
        }
        parts["step"] = parts["sampler"] + parts["trainer"]
        for part, extra in parts.items():
            cells = interval_cells(ratio_interval(extra, generate + train, bootstrap))
            rows.append({"method": method, "part": part, **cells, "repeats": generate.size})
    return rows


def _seconds(raw: pd.DataFrame, part: str, variant: str) -> Floats:
    """CPU seconds of each repeat, (1, repeats)."""
    found = raw[(raw.part == part) & (raw.variant == variant)].sort_values("repeat")
    return found.cpu_seconds.to_numpy(dtype=np.float64)[None]
