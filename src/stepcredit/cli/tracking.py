"""`stepcredit track`: the step metrics of finished runs in TensorBoard or Weights & Biases."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stepcredit.provenance.errors import UserError

commands = typer.Typer()


@commands.command("track")
def track(
    directory: Annotated[Path, typer.Argument(metavar="[DIR]", help="The results directory.")] = Path("results"),
    tensorboard: Annotated[Path | None, typer.Option(help="Directory for TensorBoard's event files.")] = None,
    wandb: Annotated[str | None, typer.Option(help="Project of Weights & Biases.")] = None,
    wandb_dir: Annotated[Path, typer.Option(help="Where wandb keeps its files.")] = Path("build/wandb"),
    offline: Annotated[bool, typer.Option(help="Keep wandb's files here, for `wandb sync`.")] = False,
) -> None:
    """Hand the step metrics of every finished training run to a tracker; nothing is trained."""
    from stepcredit.reporting.tracking import to_tensorboard, to_wandb, tracked_runs

    exporters = []
    if tensorboard is not None:
        exporters.append(to_tensorboard(tensorboard))
    if wandb is not None:
        exporters.append(to_wandb(wandb, wandb_dir, offline))
    if not exporters:
        raise UserError("track: say where to: --tensorboard DIR, --wandb PROJECT, or both")
    count = 0
    for run in tracked_runs(directory):
        for export in exporters:
            export(run)
        count += 1
    typer.echo(f"{directory}: {count} runs handed on")
