"""The mismatch experiment: `train-mismatch`, `measure-drift`, `measure-mismatch-cost`, `fingerprint-table`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stepcredit.cli.options import Model, OutDir, Settings, model_directory, model_files, use_device, use_threads
from stepcredit.cli.training import chosen_learning_rate
from stepcredit.provenance.files import atomic_path
from stepcredit.provenance.record import record
from stepcredit.provenance.stages import DATA, MODULES
from stepcredit.settings.stability import DriftJob, MismatchCostJob, StabilityJob

commands = typer.Typer()

Puzzles = Annotated[Path, typer.Option(help="Parquet of puzzles to sample from.")]
Validation = Annotated[Path, typer.Option(help="Parquet of puzzles to evaluate on.")]
MANIFEST = "manifest.json"


@commands.command("train-mismatch")
def train_mismatch(
    settings: Settings,
    seed: Annotated[int, typer.Option(help="Seed of the run.")],
    model: Model,
    puzzles: Puzzles,
    validation: Validation,
    out_dir: OutDir,
    learning_rate: Annotated[float | None, typer.Option(help="Learning rate.")] = None,
    learning_rate_file: Annotated[Path | None, typer.Option(help="JSON file with the key `learning_rate`.")] = None,
) -> None:
    """Train under a sampler made wrong on purpose and evaluate the policy: DIR/metrics, timings, evaluation."""
    use_threads()
    from stepcredit.evaluation.sample import SCHEMA
    from stepcredit.studies.stability import StabilityRun, train_under_mismatch
    from stepcredit.tables import read_puzzles, write_rows

    job = StabilityJob.model_validate_json(settings)
    rate = chosen_learning_rate("train-mismatch", learning_rate, learning_rate_file)
    directory = model_directory(model)
    use_device(job.rl.rl.device, directory)
    names = ("metrics.parquet", "timings.parquet", "evaluation.parquet")
    with record(
        "train-mismatch",
        out_dir / MANIFEST,
        modules=MODULES["train-mismatch"],
        inputs=[
            *model_files(directory),
            puzzles,
            validation,
            *([learning_rate_file] if learning_rate_file else []),
        ],
        outputs=[out_dir / name for name in names],
        settings={**job.model_dump(mode="json"), "learning_rate": rate},
        seed=seed,
    ):
        run = StabilityRun(job, seed, rate, directory, read_puzzles(puzzles), read_puzzles(validation))
        log = train_under_mismatch(run)
        write_rows(out_dir / "metrics.parquet", log.metrics)
        write_rows(out_dir / "timings.parquet", log.timings)
        write_rows(out_dir / "evaluation.parquet", log.evaluation, SCHEMA)


@commands.command("measure-drift")
def measure_drift(settings: Settings, model: Model, puzzles: Puzzles, validation: Validation, out_dir: OutDir) -> None:
    """Each loss's expected update under a constant reward, on the SFT model: DIR/drift, and DIR/start, its samples."""
    use_threads()
    from stepcredit.evaluation.sample import SCHEMA
    from stepcredit.studies import model_drift
    from stepcredit.tables import read_puzzles, write_rows

    job = DriftJob.model_validate_json(settings)
    directory = model_directory(model)
    use_device(job.rl.device, directory)
    with record(
        "measure-drift",
        out_dir / MANIFEST,
        modules=MODULES["measure-drift"],
        inputs=[*model_files(directory), puzzles, validation],
        outputs=[out_dir / "drift.parquet", out_dir / "start.parquet"],
        settings=job,
        seed=model_drift.SEED,
    ):
        log = model_drift.measure_drift(job, directory, read_puzzles(puzzles), read_puzzles(validation))
        write_rows(out_dir / "drift.parquet", log.drift)
        write_rows(out_dir / "start.parquet", log.start, SCHEMA)


@commands.command("measure-mismatch-cost")
def measure_mismatch_cost(settings: Settings, model: Model, puzzles: Puzzles, out_dir: OutDir) -> None:
    """Seconds and bytes of what score centering asks of sampler and trainer: DIR/cost."""
    use_threads()
    from stepcredit.studies.mismatch_cost import measure_cost
    from stepcredit.tables import read_puzzles, write_rows

    job = MismatchCostJob.model_validate_json(settings)
    directory = model_directory(model)
    use_device(job.rl.device, directory)
    with record(
        "measure-mismatch-cost",
        out_dir / MANIFEST,
        modules=MODULES["measure-mismatch-cost"],
        inputs=[*model_files(directory), puzzles],
        outputs=[out_dir / "cost.parquet"],
        settings=job,
    ):
        write_rows(out_dir / "cost.parquet", measure_cost(job, directory, read_puzzles(puzzles)))


@commands.command("fingerprint-table")
def fingerprint_table(out_dir: OutDir) -> None:
    """Name every loss on many random models: DIR/fingerprint, DIR/gradients, and the playground of the report."""
    use_threads()
    from stepcredit.studies.fingerprint_table import fingerprint_rows, gradient_rows
    from stepcredit.studies.playground import playground_html
    from stepcredit.tables import write_rows

    names = ("fingerprint.parquet", "gradients.parquet", "playground.html")
    with record(
        "fingerprint-table",
        out_dir / MANIFEST,
        modules=MODULES["fingerprint-table"],
        data=DATA["fingerprint-table"],
        inputs=[],
        outputs=[out_dir / name for name in names],
    ):
        write_rows(out_dir / "fingerprint.parquet", list(fingerprint_rows()))
        write_rows(out_dir / "gradients.parquet", list(gradient_rows()))
        with atomic_path(out_dir / "playground.html") as temporary:
            temporary.write_text(playground_html(), encoding="utf-8")
