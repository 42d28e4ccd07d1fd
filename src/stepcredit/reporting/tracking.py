"""The step metrics of finished runs, handed to an experiment tracker.

Training itself knows no tracker: what it logs is in `metrics.parquet`, and to look at it elsewhere never trains again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from stepcredit.provenance.errors import UserError
from stepcredit.provenance.manifest import CONFIG_NAME, MANIFEST_NAME, read_manifest
from stepcredit.reporting.raw import read_parquet

METRICS = "metrics.parquet"
SUFFIX = ".stepcredit"
"""Of the event files that are ours to replace."""


@dataclass(frozen=True)
class TrackedRun:
    """One training run.

    Attributes:
        name: its directory below the results, such as `rl/frozen/seed1`.
        identity: hexadecimal, the same for the same metrics.
        settings: what its job was given.
        seed: of the run.
        steps: step -> metric -> value; what was not measured is left out.
    """

    name: str
    identity: str
    settings: Mapping[str, Any]
    seed: int | None
    steps: Mapping[int, Mapping[str, float]]


Exporter: TypeAlias = Callable[[TrackedRun], None]


def tracked_runs(results: Path) -> Iterator[TrackedRun]:
    """Every finished training run of a results directory, by name; not those of results nested in it.

    Raises:
        UserError: there is none, or one has no manifest that fits.
    """
    nested = [config.parent for config in results.glob(f"*/**/{CONFIG_NAME}")]
    apart = [results / "state", *nested]
    found = sorted(path for path in results.rglob(METRICS) if not any(path.is_relative_to(each) for each in apart))
    if not found:
        raise UserError(f"{results}: holds no {METRICS} of a finished run (see `snakemake -n`)")
    for path in found:
        manifest = read_manifest(path.with_name(MANIFEST_NAME))
        name = path.parent.relative_to(results).as_posix()
        identity = hashlib.sha256(name.encode() + path.read_bytes()).hexdigest()[:16]
        yield TrackedRun(name, identity, manifest.settings, manifest.seed, _steps(read_parquet(path, ["step"])))


def _steps(frame: pd.DataFrame) -> dict[int, dict[str, float]]:
    metrics = frame.drop(columns="step").astype("float64")
    rows = zip(frame["step"], metrics.to_dict("records"), strict=True)
    return {int(step): {str(key): value for key, value in row.items() if pd.notna(value)} for step, row in rows}


def to_tensorboard(directory: Path) -> Exporter:
    """Scalars of each run as event files in `directory`/{name}; those of an earlier export are replaced.

    Raises:
        UserError: the package tensorboard is not installed.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise UserError(_absent("tensorboard")) from None

    def export(run: TrackedRun) -> None:
        for old in (directory / run.name).glob(f"*{SUFFIX}"):
            old.unlink()
        with SummaryWriter(str(directory / run.name), filename_suffix=SUFFIX) as writer:
            for step, metrics in run.steps.items():
                for metric, value in metrics.items():
                    writer.add_scalar(metric, value, step)

    return export


def to_wandb(project: str, directory: Path, offline: bool) -> Exporter:
    """Each run as a run of a project of Weights & Biases; the same metrics keep the same id.

    Args:
        project: its name.
        directory: where wandb keeps its files.
        offline: only there, for `wandb sync`.

    Raises:
        UserError: the package wandb is not installed.
    """
    try:
        import wandb
    except ImportError:
        raise UserError(_absent("wandb")) from None

    def export(run: TrackedRun) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        with wandb.init(
            project=project,
            id=run.identity,
            name=run.name,
            group=run.name.rpartition("/")[0] or run.name,
            config={**run.settings, "seed": run.seed},
            dir=str(directory),
            mode="offline" if offline else None,
            resume="allow",
        ) as started:
            for step, metrics in run.steps.items():
                started.log(dict(metrics), step=step)

    return export


def _absent(package: str) -> str:
    return f"the package {package} is not installed: pip install {package} (or stepcredit[tracking])"
