"""`stepcredit adopt`: take over what another machine or an older commit made, if it would be made the same here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stepcredit.provenance.errors import UserError

commands = typer.Typer()


@commands.command("adopt")
def adopt_command(
    source: Annotated[Path, typer.Argument(metavar="FROM", help="A results directory made elsewhere.")],
    target: Annotated[Path, typer.Argument(metavar="[TO]", help="The results directory.", show_default=True)] = Path(
        "results"
    ),
    config: Annotated[
        Path | None, typer.Option(help="Configuration to hold the files against.  [default: TO/config.yaml]")
    ] = None,
) -> None:
    """Copy the files of each job that verifies: bytes, code, settings, inputs, package versions."""
    from stepcredit.cli.audit import audit_directory
    from stepcredit.provenance.adopt import adopt
    from stepcredit.provenance.manifest import CONFIG_NAME

    active = target / CONFIG_NAME if config is None else config
    if not active.is_file():
        raise UserError(f"{active}: no such configuration to hold the files against; give one with --config")
    done = adopt(source, target, audit_directory(source, active))
    for name, reason in sorted(done.refused.items()):
        typer.echo(f"refused: {name}: {reason}")
    typer.echo(f"{len(done.adopted)} jobs adopted, {len(done.present)} already here, {len(done.refused)} refused")
