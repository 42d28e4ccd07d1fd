"""`signal`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stepcredit.cli.options import Manifest, Model, Settings, model_directory, model_files, use_device, use_threads
from stepcredit.provenance.record import record
from stepcredit.provenance.stages import MODULES
from stepcredit.settings.signal import SignalJob

commands = typer.Typer()


@commands.command("signal")
def signal(
    settings: Settings,
    model: Model,
    frozen: Annotated[Path, typer.Option(help="The SFT checkpoint: a Hugging Face directory, or a file in it.")],
    puzzles: Annotated[Path, typer.Option(help="Parquet of puzzles.")],
    out: Annotated[Path, typer.Option(help="Parquet of boundaries.")],
    manifest: Manifest,
) -> None:
    """Set the potential at boundaries of one checkpoint's rollouts against sampled success rates."""
    use_threads()
    from stepcredit.modeling.model import load_model
    from stepcredit.modeling.tokenizer import TextCodec
    from stepcredit.sampling.vllm_engine import VLLMSampler
    from stepcredit.scoring.tree import TreeScorer
    from stepcredit.studies.signal import SCHEMA, look
    from stepcredit.tables import read_puzzles, write_rows

    job = SignalJob.model_validate_json(settings)
    own, reference = model_directory(model), model_directory(frozen)
    use_device()
    with record(
        "signal",
        manifest,
        modules=MODULES["signal"],
        inputs=[*dict.fromkeys([*model_files(own), *model_files(reference)]), puzzles],
        outputs=[out],
        settings=job,
        seed=job.signal.seed,
    ):
        codec = TextCodec.load(own)
        scorers = {"frozen": TreeScorer(load_model(reference)), "moving": TreeScorer(load_model(own))}
        sampler = VLLMSampler(own, job.sampler, eos_id=codec.eos_id, max_concurrent=job.signal.max_concurrent)
        rows = look(sampler, codec, read_puzzles(puzzles), job, scorers)
        write_rows(out, rows, SCHEMA)
    print(f"{len(rows)} boundaries, {sum(row['tokens'] for row in rows)} tokens sampled")
