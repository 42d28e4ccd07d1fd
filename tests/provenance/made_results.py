"""Building a results directory from stages that write real files and real manifests."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.numpy import save_file

from stepcredit.provenance.audit import audit
from stepcredit.provenance.findings import AuditReport
from stepcredit.provenance.record import record

HELDOUT = [([1, 2, 3], 6), ([2, 3, 4], 9), ([3, 4, 5], 12)]
SETTINGS = {"seed": 0, "sft": {"steps": 4, "learning_rate": 0.005}}


class Results:
    """A results directory that a test builds and breaks."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def __truediv__(self, name: str) -> Path:
        return self.root / name

    def write(self, name: str, rows: list[dict[str, Any]]) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows), path)
        return path

    def stage(self, name: str, inputs: list[str], outputs: list[str], make: Callable[[], object], **more: Any) -> None:
        """Run `make` as a stage whose manifest stands beside its first output."""
        manifest = self.root / outputs[0]
        with record(
            name,
            manifest.parent / f"{manifest.stem}.manifest.json",
            modules=more.pop("modules", ["rollouts"]),
            inputs=[self.root / path for path in inputs],
            outputs=[self.root / path for path in outputs],
            settings=more.pop("settings", SETTINGS),
            **more,
        ):
            make()

    def audit(self, **arguments: Any) -> AuditReport:
        return audit(self.root, **arguments)

    def found(self, **arguments: Any) -> dict[str, str]:
        """What an audit finds: path -> verdict."""
        return {finding.path: finding.verdict for finding in self.audit(**arguments).findings}


def puzzles(rows: list[tuple[list[int], int]]) -> list[dict[str, Any]]:
    return [{"nums": nums, "target": target} for nums, target in rows]


def evaluation_rows(samples: int = 2) -> list[dict[str, Any]]:
    return [
        {
            "puzzle": index,
            "nums": nums,
            "target": target,
            "sample": sample,
            "completion": "<reasoning>",
            "answer": None if sample else "1 + 2 + 3",
            "reward": 0.0,
            "reason": "truncated",
            "well_formed": False,
            "finished": False,
            "tokens": 7,
        }
        for index, (nums, target) in enumerate(HELDOUT)
        for sample in range(samples)
    ]


def sft_rows(steps: int = 4) -> list[dict[str, Any]]:
    return [
        {"step": step, "loss": 1.0 / step, "learning_rate": 0.005, "grad_norm": 1.0, "tokens": 64}
        for step in range(1, steps + 1)
    ]


def write_model(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps({"hidden_size": 2}))
    save_file({"weight": np.arange(4, dtype=np.float32)}, directory / "model.safetensors")
