"""The files of a made-up mismatch experiment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from stepcredit.config import Config
from stepcredit.jobs import stability_runs
from stepcredit.studies.playground import playground_html

STABILITY: dict[str, Any] = {
    "methods": [{"name": "reinforce"}, {"name": "tis"}, {"name": "sc"}, {"name": "tis_sc"}],
    "mismatches": [
        {"name": "int4", "label": "INT4", "weights": "int4"},
        {"name": "int8", "label": "INT8", "weights": "int8"},
        {"name": "stale", "label": "stale", "refresh_every": 4},
    ],
    "rewards": ["raw", "group_centred"],
    "seeds": [0, 1],
}
VARIATION = {"exact": 0.0, "int8": 0.001, "int4": 0.01}
SHARE = {"reinforce": 1.0, "tis": 0.4, "sc": 0.002, "sc_sampled": 0.0, "tis_sc": 0.001}
"""Drift of each loss over that of the plain policy gradient."""
STEPS = 6


def lift(mismatch: str, method: str, rewards: str) -> float:
    """INT4 with +1/0 rewards ruins what does not center; under staleness TIS + SC leads."""
    if mismatch == "int4" and method in ("reinforce", "tis"):
        return -0.45 if rewards == "raw" else -0.05
    return 0.2 if (mismatch, method) == ("stale", "tis_sc") else 0.05


def fabricate_stability(root: Path, config: Config, samples: Callable[[float, int], pd.DataFrame]) -> None:
    """`samples` makes validation samples at a lift of the accuracy."""
    generator = np.random.Generator(np.random.PCG64(5))
    folder = root / "stability"
    settings = config.stability
    _write(folder / "drift/start.parquet", samples(0.0, settings.samples))
    _write(folder / "drift/drift.parquet", drift(generator))
    _write(folder / "cost/cost.parquet", cost(generator))
    _write(folder / "fingerprint/fingerprint.parquet", fingerprints())
    _write(folder / "fingerprint/gradients.parquet", gradients())
    (folder / "fingerprint/playground.html").write_text(playground_html(), encoding="utf-8")
    for mismatch, method, rewards in stability_runs(settings):
        for seed in settings.seeds:
            place = folder / f"runs/{mismatch}/{method}/{rewards}/seed{seed}"
            _write(place / "evaluation.parquet", samples(lift(mismatch, method, rewards), settings.samples))
            _write(place / "metrics.parquet", metrics(generator))


def metrics(generator: np.random.Generator) -> pd.DataFrame:
    names = ("reward", "drift", "total_variation", "mean_ratio", "entropy", "length")
    columns = {name: 0.5 + 0.05 * generator.normal(size=STEPS) for name in names}
    return pd.DataFrame({"step": range(1, STEPS + 1), **columns})


def drift(generator: np.random.Generator) -> pd.DataFrame:
    rows = []
    for mismatch, variation in VARIATION.items():
        for method, share in SHARE.items():
            for head in [32, 4, 40] if method == "sc" else [32]:
                for rollout in range(8):
                    size = variation * generator.uniform(0.8, 1.2)
                    left = share + (0.3 if head == 4 else 0.0)
                    key = {"mismatch": mismatch, "method": method, "head": head, "full": head == 40}
                    values = {"drift": left * size, "total_variation": size, "off_difference": (1 - left) * size}
                    rows.append({**key, "rollout": rollout, **values})
    return pd.DataFrame(rows)


def cost(generator: np.random.Generator) -> pd.DataFrame:
    sampler = {"none": (0, 0, 1.0), "top 32": (32, 0, 1.1), "8 draws": (0, 8, 1.05)}
    trainer = {"reinforce": (0, 0, 1.0), "sc": (32, 0, 1.02), "sc_sampled": (0, 8, 1.01), "tis_sc": (32, 0, 1.02)}
    rows = []
    for repeat in range(4):
        for part, variants in {"sampler": sampler, "trainer": trainer}.items():
            for variant, (head, draws, seconds) in variants.items():
                measured = seconds * generator.uniform(0.999, 1.001)
                size = {"tokens": 1000, "bytes": 12 * 1000 * (head + draws)}
                times = {"seconds": measured, "cpu_seconds": measured}
                key = {"part": part, "variant": variant, "head": head, "draws": draws, "repeat": repeat}
                rows.append(key | size | times)
    return pd.DataFrame(rows)


def fingerprints() -> pd.DataFrame:
    labels = {
        "reinforce": "Plain",
        "tis": "TIS",
        "sc": "SC",
        "sc_sampled": "SC, sampled",
        "tis_sc": "TIS + SC",
    }
    found = {"distance": 1e-9, "next_distance": 0.05}
    return pd.DataFrame(
        [
            {"loss": loss, "label": label, "model": model, "named": loss, **found}
            for loss, label in labels.items()
            for model in range(3)
        ]
    )


def gradients() -> pd.DataFrame:
    rows = []
    for loss, dense in (("reinforce", True), ("sc_sampled", False)):
        for token in range(10):
            role = "sampled" if token == 3 else "drawn" if token in (4, 5) else "other"
            value = 0.8 if role == "sampled" else -0.1
            row = {"loss": loss, "token": token, "role": role, "draws": int(role == "drawn"), "gradient": value}
            rows.append({**row, "moved": dense or role != "other"})
    return pd.DataFrame(rows)


def _write(path: Path, frame: pd.DataFrame) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.to_parquet(path, index=False)
