"""`parity`: does the sampler tell the truth about what it sampled? `random-model`: a shape to audit."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from stepcredit.cli.options import Model, OutDir, Settings, model_directory, model_files, use_device, use_threads
from stepcredit.provenance.errors import UserError
from stepcredit.provenance.manifest import MANIFEST_NAME
from stepcredit.settings.parity import ParityAuditSettings
from stepcredit.settings.sft import SFTJob

commands = typer.Typer()


@commands.command("parity")
def parity(
    model: Model,
    setting: Annotated[list[str] | None, typer.Option(help="A setting to measure; repeat; all by default.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a program.")] = False,
    out: Annotated[Path | None, typer.Option(help="Parquet of one row a setting.")] = None,
    puzzles: Annotated[Path | None, typer.Option(help="Parquet of puzzles to prompt with; random by default.")] = None,
    settings: Annotated[str | None, typer.Option(help="Settings as JSON (`snakemake -p` prints them).")] = None,
    manifest: Annotated[Path | None, typer.Option(help="Where a manifest is written, if any.")] = None,
    workers: Annotated[int, typer.Option(help="Processes at a time, of one thread each.", min=1)] = 2,
) -> None:
    """Sample with vLLM under each setting, recompute with the trainer, compare token by token."""
    use_threads()
    from stepcredit.provenance.record import record
    from stepcredit.provenance.stages import MODULES
    from stepcredit.studies.parity.audit import run_audit
    from stepcredit.tables import read_puzzles, write_rows

    directory = model_directory(model)
    if not (directory / "config.json").is_file():
        raise UserError(f"{model} is no checkpoint to audit: it has no config.json")
    if manifest is not None and out is None:
        raise UserError("parity: --manifest records an output, so it needs --out")
    audit = ParityAuditSettings.model_validate_json(settings) if settings else ParityAuditSettings()
    if setting:
        audit = audit.model_copy(update={"settings": setting})
    use_device()
    inputs = [*model_files(directory), *([puzzles] if puzzles else [])]
    recording: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
    if manifest is not None:
        assert out is not None
        recording = record(
            "parity",
            manifest,
            modules=MODULES["parity"],
            inputs=inputs,
            outputs=[out],
            settings=audit,
            seed=audit.seed,
        )
    with recording:
        rows = run_audit(directory, audit, read_puzzles(puzzles) if puzzles else None, workers)
        if out is not None:
            write_rows(out, rows)
    typer.echo(json.dumps(rows, indent=2) if as_json else "\n".join(describe(rows)))


@commands.command("random-model")
def random_model(settings: Settings, out_dir: OutDir) -> None:
    """Write a checkpoint of random weights: a shape to audit without training it."""
    use_threads()
    from stepcredit.modeling.model import build_model, save_model
    from stepcredit.modeling.tokenizer import TextCodec, build_tokenizer
    from stepcredit.provenance.files import files_under
    from stepcredit.provenance.record import record
    from stepcredit.provenance.stages import MODULES

    job = SFTJob.model_validate_json(settings)
    with record(
        "random-model",
        out_dir / MANIFEST_NAME,
        modules=MODULES["random-model"],
        settings=job,
        seed=job.sft.seed,
    ) as files:
        codec = TextCodec(build_tokenizer(job.largest_number))
        save_model(build_model(job.model, codec, job.sft.seed), codec, out_dir)
        files.outputs.extend(files_under(out_dir))


def describe(rows: list[dict[str, Any]]) -> list[str]:
    """The rows for a person, and the rule that judged them."""
    from stepcredit.losses.agreement import RULE
    from stepcredit.studies.parity.audit import surprises

    header = (
        f"{'setting':<32}{'mean |d|':>10}{'worst':>10}{'ratio':>9}{'KL':>10}{'clipped':>9}{'ESS':>7}{'lag':>6}  verdict"
    )
    lines = [header, *(_line(row) for row in rows), "", RULE]
    odd = surprises(rows)
    lines.append(
        f"not as known of them: {', '.join(odd)}" if odd else "each setting known to be bad is flagged, no good one is"
    )
    return lines


def _line(row: dict[str, Any]) -> str:
    if row["tokens"] is None:
        return f"{row['setting']:<32}{'':>61}  {row['verdict']} ({row['note']})"
    note = f" ({row['note']})" if row["note"] else ""
    return (
        f"{row['setting']:<32}{row['mean_abs']:>10.1e}{row['worst']:>10.1e}{row['mean_ratio']:>9.4f}{row['kl']:>10.1e}"
        f"{row['clipped']:>9.4f}{row['effective_sample_size']:>7.3f}{row['lag']:>6.2f}  {row['verdict']}{note}"
    )
