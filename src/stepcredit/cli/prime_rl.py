"""The prime-rl backend: `prime-rl` writes its configurations, `train-sft-prime` and `train-rl-prime` run it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stepcredit.cli.options import Model, OutDir, Settings, State, model_directory, model_files, use_threads
from stepcredit.cli.training import chosen_learning_rate
from stepcredit.devices import claim_devices
from stepcredit.provenance.errors import UserError
from stepcredit.provenance.record import record
from stepcredit.provenance.stages import DATA, MODULES
from stepcredit.settings.prime_rl import PrimeRLJob
from stepcredit.settings.sft import SFTJob

GPUS = 2
"""One trains, one samples."""

commands = typer.Typer()


@commands.command("prime-rl")
def prime_rl(
    configfile: Annotated[list[Path], typer.Option(help="Configuration, laid over the default; may be repeated.")],
    out: Annotated[Path, typer.Option(help="Directory of the TOML files.")],
    learning_rate: Annotated[
        float | None, typer.Option(help="Of RL; the first of the sweep if not given (a run takes the one chosen).")
    ] = None,
) -> None:
    """Write the configurations that prime-rl runs with: OUT/sft.toml, OUT/rl/ARM/seedN.toml."""
    from stepcredit import jobs
    from stepcredit.config_files import load_config
    from stepcredit.training.prime_rl.config import RunPlace, rl_configuration, sft_configuration, write_toml

    default = Path("config/config.yaml")
    config = load_config(*([default] if default.is_file() else []), *configfile, overrides={"backend": "prime-rl"})
    results = Path(config.outdir)
    runs = results / "state" / "runs"
    sft = RunPlace(runs, "sft", Path(config.model.pretrained or ""), results / "data" / "splits" / "demonstrations")
    write_toml(sft_configuration(config.sft, sft), out / "sft.toml")
    for arm in config.arms:
        job = jobs.prime_rl_job(config, jobs.rl_job(config, arm))
        for seed in config.seeds_of(arm):
            place = RunPlace(
                runs, f"{arm}-seed{seed}", results / "sft" / "model", results / "data" / "splits" / "rl.parquet"
            )
            rate = learning_rate or config.sweep.learning_rates[0]
            write_toml(rl_configuration(job, seed, rate, place), out / "rl" / arm / f"seed{seed}.toml")
    print(f"{sum(1 for _ in out.rglob('*.toml'))} files in {out}")


@commands.command("train-sft-prime")
def train_sft_prime(
    settings: Settings,
    demonstrations: Annotated[Path, typer.Option(help="Parquet of clean demonstrations.")],
    state: State,
    out_dir: OutDir,
) -> None:
    """Fine-tune with prime-rl: DIR/model, metrics, timings, manifest."""
    use_threads()
    from stepcredit.tables import write_rows
    from stepcredit.training.prime_rl.run import run_sft

    job = SFTJob.model_validate_json(settings)
    if job.model.pretrained is None:
        raise UserError("train-sft-prime: prime-rl trains a pretrained model: set model.pretrained")
    claim_devices(GPUS)
    model = Path(job.model.pretrained)
    names = ("model", "metrics.parquet", "timings.parquet")
    with record(
        "train-sft-prime",
        out_dir / "manifest.json",
        modules=MODULES["train-sft-prime"],
        data=DATA["train-sft-prime"],
        inputs=[demonstrations, *(model_files(model) if model.is_dir() else [model])],
        outputs=[out_dir / name for name in names],
        settings=job,
        seed=job.sft.seed,
    ):
        log = run_sft(job.sft, model, demonstrations, state, out_dir)
        write_rows(out_dir / "metrics.parquet", log.metrics)
        write_rows(out_dir / "timings.parquet", log.timings)


@commands.command("train-rl-prime")
def train_rl_prime(
    settings: Settings,
    seed: Annotated[int, typer.Option(help="Seed of the run.")],
    model: Model,
    puzzles: Annotated[Path, typer.Option(help="Parquet of puzzles to train on.")],
    state: State,
    out_dir: OutDir,
    learning_rate: Annotated[float | None, typer.Option(help="Learning rate.")] = None,
    learning_rate_file: Annotated[Path | None, typer.Option(help="JSON file with the key `learning_rate`.")] = None,
) -> None:
    """Train one arm with one seed with prime-rl: DIR/checkpoints, metrics, timings, rollouts, manifest."""
    use_threads()
    from stepcredit.tables import write_rows
    from stepcredit.training.prime_rl.run import RLInputs, run_rl
    from stepcredit.training.records import ROLLOUTS_SCHEMA

    job = PrimeRLJob.model_validate_json(settings)
    rate = chosen_learning_rate("train-rl-prime", learning_rate, learning_rate_file)
    claim_devices(GPUS)
    directory = model_directory(model)
    names = ("checkpoints", "metrics.parquet", "timings.parquet", "rollouts.parquet")
    with record(
        "train-rl-prime",
        out_dir / "manifest.json",
        modules=MODULES["train-rl-prime"],
        data=DATA["train-rl-prime"],
        inputs=[*model_files(directory), puzzles, *([learning_rate_file] if learning_rate_file else [])],
        outputs=[out_dir / name for name in names],
        settings={**job.model_dump(mode="json"), "learning_rate": rate},
        seed=seed,
    ):
        log = run_rl(job, seed, rate, RLInputs(directory, puzzles), state, out_dir)
        write_rows(out_dir / "metrics.parquet", log.metrics)
        write_rows(out_dir / "timings.parquet", log.timings)
        write_rows(out_dir / "rollouts.parquet", log.rollouts, ROLLOUTS_SCHEMA)
