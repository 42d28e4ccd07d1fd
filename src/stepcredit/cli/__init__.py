"""The command `stepcredit`: one subcommand a stage, and the parts that others use alone."""

from __future__ import annotations

import sys

import typer

from stepcredit.cli import (
    audit,
    data,
    evaluation,
    fingerprint,
    parity,
    prime_rl,
    reporting,
    scoring,
    signal,
    stability,
    training,
)
from stepcredit.config_files import ConfigError
from stepcredit.provenance.errors import UserError

app = typer.Typer(
    help="Paragraph-level credit, score centering and parity for RL on reasoning models.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for topic in (data, training, prime_rl, evaluation, signal, reporting, scoring, fingerprint, stability, parity, audit):
    app.add_typer(topic.commands)


def main() -> None:
    """Run the command line; a user's mistake is one message and exit code 2."""
    try:
        app()
    except (UserError, ConfigError) as error:
        sys.exit(_fail(str(error)))


def _fail(message: str) -> int:
    print(f"stepcredit: {message}", file=sys.stderr)
    return 2
