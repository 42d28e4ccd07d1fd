"""`serve-scorer`: a scorer server in the foreground; `score-benchmark` and its companions: the scoring study."""

from __future__ import annotations

import signal
import tempfile
import time
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from stepcredit.cli.options import Manifest, Model, Settings, model_directory, model_files, use_device, use_threads
from stepcredit.provenance.record import record
from stepcredit.provenance.stages import MODULES
from stepcredit.settings.scoring import ScoringJob

commands = typer.Typer()

Rollouts = Annotated[Path, typer.Option(help="Recorded rollouts of a run: the workload.")]
Threads = Annotated[int, typer.Option(help="Threads of each scorer.")]


@commands.command("serve-scorer")
def serve_scorer(
    model: Annotated[Path, typer.Argument(help="Checkpoint directory (Hugging Face layout).")],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0: one that the operating system chooses.")] = 0,
    api_key: Annotated[
        str | None, typer.Option(envvar="STEPCREDIT_API_KEY", help="What clients must show; made up if not given.")
    ] = None,
    dtype: Annotated[str, typer.Option(help="Of weights and activations.")] = "auto",
    max_model_len: Annotated[int | None, typer.Option(help="Longest sequence, in tokens.")] = None,
    block_size: Annotated[int, typer.Option(help="Of the prefix cache, in tokens; a CPU takes multiples of 32.")] = 32,
    kv_cache_mib: Annotated[int | None, typer.Option(help="Size of the KV cache.")] = None,
    max_concurrent: Annotated[int, typer.Option(help="Sequences in one forward pass.")] = 256,
    allow_updates: Annotated[bool, typer.Option(help="Whether clients may change the weights.")] = False,
    log: Annotated[
        Path | None, typer.Option(help="Where the output of vLLM goes; a temporary file if not given.")
    ] = None,
) -> None:
    """Score answers with a checkpoint: start a vLLM server with the plugin and keep it until Ctrl-C or SIGTERM."""
    from stepcredit.scoring.server import ScorerServer, ServerSettings
    from stepcredit.scoring.transport import ServerError

    use_device()
    settings = ServerSettings(
        host=host,
        port=port,
        dtype=dtype,
        max_model_len=max_model_len,
        max_concurrent=max_concurrent,
        block_size=block_size,
        kv_cache_mib=kv_cache_mib,
        allow_updates=allow_updates,
    )
    signal.signal(signal.SIGTERM, _leave)
    with ScorerServer(model, settings, api_key=api_key, log_path=log) as server:
        typer.echo(f"url: {server.url}\nlog: {server.log}")
        if api_key is None:
            typer.echo(f"api key: {server.api_key}")
        while not (death := server.death()):
            time.sleep(0.5)
        raise ServerError(death)


@commands.command("score-benchmark")
def score_benchmark(
    settings: Settings,
    model: Model,
    rollouts: Rollouts,
    out: Annotated[Path, typer.Option(help="Parquet with a row for each scorer and repetition.")],
    manifest: Manifest,
    threads: Threads = 1,
) -> None:
    """Time every scorer on recorded rollouts with a checkpoint, against plain forward passes."""
    use_threads(threads)
    from stepcredit.modeling.tokenizer import TextCodec
    from stepcredit.studies.scoring.benchmark import SCHEMA, benchmark
    from stepcredit.studies.scoring.workload import recorded_requests
    from stepcredit.tables import write_rows

    job = ScoringJob.model_validate_json(settings)
    directory = model_directory(model)
    use_device()
    with record(
        "score-benchmark",
        manifest,
        modules=MODULES["score-benchmark"],
        inputs=[*model_files(directory), rollouts],
        outputs=[out],
        settings=job,
    ):
        codec = TextCodec.load(directory)
        requests = recorded_requests(rollouts, codec, job.shaping, job.scoring.scorings)
        write_rows(out, benchmark("run", directory, requests, job), SCHEMA)


@commands.command("score-benchmark-large")
def score_benchmark_large(
    settings: Settings,
    model: Annotated[Path, typer.Option(help="The checkpoint whose tokenizer reads the rollouts.")],
    rollouts: Rollouts,
    out: Annotated[Path, typer.Option(help="Parquet with a row for each scorer and repetition.")],
    manifest: Manifest,
    threads: Threads = 1,
) -> None:
    """The same with random weights of a larger shape, on one long trunk made of recorded rollouts."""
    use_threads(threads)
    from stepcredit.modeling.model import random_model
    from stepcredit.modeling.tokenizer import TextCodec
    from stepcredit.studies.scoring.benchmark import SCHEMA, benchmark, roomy
    from stepcredit.studies.scoring.workload import long_request, recorded_requests
    from stepcredit.tables import write_rows

    job = ScoringJob.model_validate_json(settings)
    study = job.scoring
    directory = model_directory(model)
    use_device()
    with (
        record(
            "score-benchmark-large",
            manifest,
            modules=MODULES["score-benchmark-large"],
            inputs=[*model_files(directory), rollouts],
            outputs=[out],
            settings=job,
            seed=job.seed,
        ),
        tempfile.TemporaryDirectory(prefix="large-model-") as large,
    ):
        recorded = recorded_requests(rollouts, TextCodec.load(directory), job.shaping, study.scorings)
        requests = long_request(recorded, study.large_trunk, study.large_scorings)
        random_model(study.large, study.large_vocabulary, {"eos_token_id": 0}, job.seed).save_pretrained(large)
        write_rows(out, benchmark("large", Path(large), requests, roomy(job, requests)), SCHEMA)


@commands.command("time-scoring-steps")
def time_scoring_steps(
    settings: Settings,
    model: Model,
    puzzles: Annotated[Path, typer.Option(help="Parquet of puzzles to train on.")],
    out: Annotated[Path, typer.Option(help="Parquet with a row for each scorer, step and phase.")],
    manifest: Manifest,
    threads: Threads = 1,
) -> None:
    """Time a few RL steps with each scorer, frozen and moving."""
    use_threads(threads)
    from stepcredit.studies.scoring.steps import SCHEMA, time_steps
    from stepcredit.tables import read_puzzles, write_rows

    job = ScoringJob.model_validate_json(settings)
    directory = model_directory(model)
    use_device()
    with record(
        "time-scoring-steps",
        manifest,
        modules=MODULES["time-scoring-steps"],
        inputs=[*model_files(directory), puzzles],
        outputs=[out],
        settings=job,
        seed=job.seed,
    ):
        write_rows(out, time_steps(directory, read_puzzles(puzzles), job), SCHEMA)


def _leave(*_: object) -> NoReturn:
    """Leave by the front door, so that the server is stopped."""
    raise SystemExit(128 + signal.SIGTERM)
