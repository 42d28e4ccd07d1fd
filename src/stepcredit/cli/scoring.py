"""`stepcredit serve-scorer`: a scorer server in the foreground."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Annotated, NoReturn

import typer

commands = typer.Typer()


@commands.command("serve-scorer")
def serve_scorer(
    model: Annotated[Path, typer.Argument(help="Checkpoint directory (Hugging Face layout).")],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0: one that the operating system chooses.")] = 0,
    api_key: Annotated[
        str | None, typer.Option(envvar="STEPCREDIT_API_KEY", help="What clients must show; made up if not given.")
    ] = None,
    dtype: Annotated[str, typer.Option(help="Of weights and activations.")] = "auto",
    max_model_len: Annotated[int | None, typer.Option(help="Longest sequence, in tokens.")] = None,
    block_size: Annotated[int, typer.Option(help="Of the prefix cache, in tokens; a CPU takes multiples of 32.")] = 32,
    kv_cache_mib: Annotated[int | None, typer.Option(help="Size of the KV cache.")] = None,
    max_concurrent: Annotated[int, typer.Option(help="Sequences in one forward pass.")] = 256,
    allow_updates: Annotated[bool, typer.Option(help="Whether clients may change the weights.")] = False,
    log: Annotated[
        Path | None, typer.Option(help="Where the output of vLLM goes; a temporary file if not given.")
    ] = None,
) -> None:
    """Score answers with a checkpoint: start a vLLM server with the plugin and keep it until Ctrl-C or SIGTERM."""
    from stepcredit.scoring.server import ScorerServer, ServerSettings
    from stepcredit.scoring.transport import ServerError

    settings = ServerSettings(
        host=host,
        port=port,
        dtype=dtype,
        max_model_len=max_model_len,
        max_concurrent=max_concurrent,
        block_size=block_size,
        kv_cache_mib=kv_cache_mib,
        allow_updates=allow_updates,
    )
    signal.signal(signal.SIGTERM, _leave)
    with ScorerServer(model, settings, api_key=api_key, log_path=log) as server:
        typer.echo(f"url: {server.url}\nlog: {server.log}")
        if api_key is None:
            typer.echo(f"api key: {server.api_key}")
        while not (death := server.death()):
            time.sleep(0.5)
        raise ServerError(death)


def _leave(*_: object) -> NoReturn:
    """Leave by the front door, so that the server is stopped."""
    raise SystemExit(128 + signal.SIGTERM)
