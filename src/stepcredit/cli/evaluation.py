"""`evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stepcredit.cli.options import Manifest, Model, Settings, model_directory, model_files, use_device, use_threads
from stepcredit.provenance.record import record
from stepcredit.provenance.stages import MODULES
from stepcredit.settings.evaluation import EvaluationJob

commands = typer.Typer()


@commands.command("evaluate")
def evaluate(
    settings: Settings,
    model: Model,
    puzzles: Annotated[Path, typer.Option(help="Parquet of puzzles.")],
    out: Annotated[Path, typer.Option(help="Parquet of graded rollouts.")],
    manifest: Manifest,
) -> None:
    """Sample and grade rollouts of one checkpoint."""
    use_threads()
    from stepcredit.evaluation.sample import SCHEMA
    from stepcredit.evaluation.sample import evaluate as sample
    from stepcredit.modeling.tokenizer import TextCodec
    from stepcredit.sampling.vllm_engine import VLLMSampler
    from stepcredit.tables import read_puzzles, write_rows

    job = EvaluationJob.model_validate_json(settings)
    directory = model_directory(model)
    use_device()
    with record(
        "evaluate",
        manifest,
        modules=MODULES["evaluate"],
        inputs=[*model_files(directory), puzzles],
        outputs=[out],
        settings=job,
        seed=job.seed,
    ):
        codec = TextCodec.load(directory)
        sampler = VLLMSampler(directory, job.sampler, eos_id=codec.eos_id, max_concurrent=job.max_concurrent)
        rows = sample(sampler, codec, read_puzzles(puzzles), job)
        write_rows(out, rows, SCHEMA)
    print(f"{len(rows)} rollouts, {sum(row['reward'] for row in rows) / len(rows):.3f} right")
