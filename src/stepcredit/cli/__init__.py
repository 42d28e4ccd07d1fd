"""The command `stepcredit`: one subcommand a stage, and the parts that others use alone."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from stepcredit import __version__
from stepcredit.cli import (
    adopt,
    audit,
    data,
    evaluation,
    exchange,
    faults,
    fingerprint,
    parity,
    prime_rl,
    reporting,
    scoring,
    signal,
    stability,
    tracking,
    training,
)
from stepcredit.config_files import ConfigError
from stepcredit.provenance.errors import UserError
from stepcredit.vllm_process import collect_rarely

app = typer.Typer(
    help="Paragraph-level credit, score centering and parity for RL on reasoning models.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
STAGES = (data, training, prime_rl, evaluation, signal, reporting, scoring, fingerprint, stability, parity)
ALONE = ("clean", "grade", "serve-scorer", "fingerprint", "parity", "prime-rl")
"""Commands of the stages' modules that are meant for people, too."""
for topic in (*STAGES, audit, adopt, exchange, tracking):
    for command in topic.commands.registered_commands:
        if topic in STAGES and command.name not in ALONE:
            command.rich_help_panel = "Stages, as the workflow calls them (snakemake -p prints each call)"
    app.add_typer(topic.commands)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show it.")
    ] = False,
) -> None:
    """Nothing by itself: each command has its own function."""


def main() -> None:
    """Run the command line; a user's mistake is one message and exit code 2, a fault of the machine one and 3."""
    faults.unwind_on_signals()
    collect_rarely()
    try:
        app()
    except (UserError, ConfigError) as error:
        sys.exit(_fail(str(error), 2))
    except Exception as error:
        said = faults.sentence(error)
        if said is None:
            raise
        sys.exit(_fail(said, 3))


def _fail(message: str, status: int) -> int:
    print(f"stepcredit: {message}", file=sys.stderr)
    return status
