"""`stepcredit crate` and `stepcredit croissant`: a run, and its data, in the formats that archives read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from stepcredit.provenance.errors import UserError

commands = typer.Typer()

Directory = Annotated[Path, typer.Argument(metavar="[DIR]", help="The results directory.", show_default=True)]
RESULTS = Path("results")


@commands.command("crate")
def crate(
    directory: Directory = RESULTS,
    out: Annotated[Path, typer.Option(help="The zip to write.")] = Path("crate.zip"),
    workflow: Annotated[Path, typer.Option(help="Directory of the Snakefile.")] = Path("."),
) -> None:
    """Pack a finished run as an RO-Crate (Workflow Run profile); only one in which the audit finds nothing."""
    from stepcredit import __version__
    from stepcredit.cli.audit import audit_directory
    from stepcredit.provenance.crate import write_crate

    report = audit_directory(directory)
    if report.findings:
        first = report.findings[0]
        raise UserError(
            f"{directory}: {len(report.findings)} findings, the first: {first.path} is {first.verdict};"
            f" `stepcredit audit {directory}` names them and what mends them"
        )
    count = write_crate(directory, workflow, out, __version__)
    typer.echo(f"{out}: {count} files, {out.stat().st_size / 2**20:.1f} MiB")


@commands.command("croissant")
def croissant(
    directory: Directory = RESULTS,
    out: Annotated[
        Path | None, typer.Option(help="The JSON-LD file to write, beside the data.  [default: standard output]")
    ] = None,
) -> None:
    """Describe the cleaned data and its splits in Croissant; addresses are relative to DIR/data."""
    from stepcredit import __version__
    from stepcredit.provenance.croissant import describe_data
    from stepcredit.provenance.files import atomic_path

    text = json.dumps(describe_data(directory / "data", __version__), indent=2, ensure_ascii=False) + "\n"
    if out is None:
        typer.echo(text, nl=False)
        return
    with atomic_path(out) as temporary:
        temporary.write_text(text, encoding="utf-8")
