"""Tables of the drift of each loss on the SFT model, and of the fingerprints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from stepcredit.evaluation.statistics import Bootstrap, Floats, Interval, mean_interval, ratio_interval
from stepcredit.reporting.csvfiles import Row, interval_cells, write_rows
from stepcredit.reporting.layout import RunLayout
from stepcredit.reporting.raw import read_parquet
from stepcredit.reporting.settings import TablesSettings
from stepcredit.settings.mismatch import EXACT, MismatchSettings

KEY = ["mismatch", "method", "head", "full"]
COLUMNS = [*KEY, "metric", "mean", "low", "high", "rollouts"]


def write_drift_tables(run: RunLayout, settings: TablesSettings, out_dir: Path) -> None:
    """drift.csv, stability_mismatches.csv, fingerprint.csv and fingerprint_gradient.csv."""
    raw = read_parquet(run.stability("drift/drift"), [*KEY, "rollout", "drift"])
    write_rows(out_dir / "drift.csv", COLUMNS, list(_drift(raw, settings.bootstrap)))
    exact = MismatchSettings(name=EXACT, label="exact")
    columns = ["mismatch", "label", "weights", "embedding", "noise", "refresh_every", "kv_cache", "total_variation"]
    described = [_describe(mismatch, raw) for mismatch in (exact, *settings.stability.mismatches)]
    write_rows(out_dir / "stability_mismatches.csv", columns, described)
    gradients = read_parquet(run.stability("fingerprint/gradients"))
    prints = read_parquet(run.stability("fingerprint/fingerprint"))
    summary = ["loss", "label", "models", "right", "distance", "next_distance", "moved", "outside"]
    write_rows(out_dir / "fingerprint.csv", summary, list(_fingerprints(prints, gradients)))
    shown = ["loss", "token", "role", "draws", "gradient", "moved"]
    write_rows(out_dir / "fingerprint_gradient.csv", shown, _records(gradients[shown]))


def _drift(raw: pd.DataFrame, bootstrap: Bootstrap) -> Iterator[Row]:
    """The drift, its share of what the plain policy gradient would have, and how far it is from q - p."""
    for key, rows in raw.groupby(KEY, sort=False):
        drift, variation, off = (_row(rows[name]) for name in ("drift", "total_variation", "off_difference"))
        metrics = {
            "drift": mean_interval(drift, bootstrap),
            "total_variation": mean_interval(variation, bootstrap),
            "share": _share(drift, variation, bootstrap),
            "off_difference": _share(off, variation, bootstrap),
        }
        cells = dict(zip(KEY, key, strict=True)) | {"full": bool(key[-1]), "rollouts": len(rows)}
        for name, interval in metrics.items():
            yield {**cells, "metric": name, **interval_cells(interval)}


def _row(values: pd.Series[float]) -> Floats:
    return np.asarray(values, dtype=np.float64)[None]


def _records(frame: pd.DataFrame) -> list[Row]:
    return [dict(zip(frame.columns, row, strict=True)) for row in frame.itertuples(index=False)]


def _share(part: Floats, whole: Floats, bootstrap: Bootstrap) -> Interval:
    return ratio_interval(part, whole, bootstrap)


def _describe(mismatch: MismatchSettings, raw: pd.DataFrame) -> Row:
    """A mismatch and its total variation on the SFT model; none where it takes training to be one."""
    cells = mismatch.model_dump(exclude={"name"})
    found = raw.loc[raw.mismatch == mismatch.name, "total_variation"]
    return {"mismatch": mismatch.name, **cells, "total_variation": float(found.mean()) if len(found) else None}


def _fingerprints(prints: pd.DataFrame, gradients: pd.DataFrame) -> Iterator[Row]:
    """`moved`: logits that the step moves at the probe token; `outside`: of those, neither sampled nor drawn."""
    for loss, rows in prints.groupby("loss", sort=False):
        moved = gradients[(gradients.loss == loss) & gradients.moved]
        known = bool((gradients.loss == loss).any())
        yield {
            "loss": loss,
            "label": rows.label.iloc[0],
            "models": len(rows),
            "right": int((rows.named == loss).sum()),
            "distance": float(rows.distance.max()),
            "next_distance": float(rows.next_distance.min()),
            "moved": len(moved) if known else None,
            "outside": int((moved.role == "other").sum()) if known else None,
        }
