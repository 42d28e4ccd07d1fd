"""`stepcredit fingerprint`: name a loss from the weights that one optimiser step changes."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from stepcredit.provenance.errors import UserError

commands = typer.Typer()


@commands.command("fingerprint")
def fingerprint_command(
    loss: Annotated[str | None, typer.Option("--loss", help="The loss to hide and name.")] = None,
    all_losses: Annotated[bool, typer.Option("--all", help="Every loss of the family.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Rows of loss, named, distance.")] = False,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the random model that is probed.")] = 0,
) -> None:
    """Hide a loss behind one optimiser step on a random model, recover its gradient and name it.

    The distance is the share of the recovered gradient that the named loss leaves unexplained.
    """
    from stepcredit.losses import LOSSES
    from stepcredit.studies.fingerprint import fingerprint

    if all_losses == (loss is not None):
        raise UserError(f"give either --loss NAME or --all; known losses: {', '.join(LOSSES)}")
    names = list(LOSSES) if loss is None else [loss]
    try:
        found = {name: fingerprint(name, seed) for name in names}
    except ValueError as error:
        raise UserError(f"--loss: {error}") from error
    if as_json:
        rows = [{"loss": name, "named": result.named, "distance": result.distance} for name, result in found.items()]
        typer.echo(json.dumps(rows, indent=2))
        return
    typer.echo(f"{'loss':<16}{'named':<16}{'distance':>10}")
    for name, result in found.items():
        typer.echo(f"{name:<16}{result.named:<16}{result.distance:>10.1e}")
    if loss is not None:
        typer.echo("\ndistance to each known loss")
        for candidate, distance in found[loss].distances.items():
            typer.echo(f"{candidate:<16}{'':<16}{distance:>10.1e}")
