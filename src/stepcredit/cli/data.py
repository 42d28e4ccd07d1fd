"""`ingest`, `clean`, `split`, `grade`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Annotated

import typer

from stepcredit.cli.options import Manifest, OutDir, Settings
from stepcredit.provenance.errors import UserError
from stepcredit.provenance.files import atomic_path
from stepcredit.provenance.record import Record, record
from stepcredit.provenance.stages import MODULES
from stepcredit.settings.data import DataSettings

commands = typer.Typer()


@commands.command("ingest")
def ingest(
    settings: Settings,
    out: Annotated[Path, typer.Option(help="Parquet of raw rows.")],
    manifest: Manifest,
) -> None:
    """Write the raw rows of the configured source."""
    from stepcredit.data.sources import open_source
    from stepcredit.data.tables import write_raw

    data = DataSettings.model_validate_json(settings)
    inputs = [Path(data.file.path)] if data.source == "file" and data.file.path else []
    with record(
        "ingest",
        manifest,
        modules=MODULES["ingest"],
        inputs=inputs,
        outputs=[out],
        settings=data,
        seed=data.seed,
    ):
        count = write_raw(out, open_source(data).rows())
    print(f"{count} raw rows from the source {data.source}")


@commands.command("clean")
def clean(
    source: Annotated[Path, typer.Option("--in", help="JSONL or Parquet of raw rows.")],
    out: Annotated[Path, typer.Option(help="Clean demonstrations, .parquet or .jsonl.")],
    funnel: Annotated[Path, typer.Option(help="CSV of rows read, dropped for each reason, kept.")],
    manifest: Annotated[Path | None, typer.Option(help="Where a manifest is written, if any.")] = None,
) -> None:
    """Normalise, verify and rewrite demonstrations; count every dropped row under one reason."""
    from stepcredit.data.cleaning import Funnel
    from stepcredit.data.cleaning import clean as clean_rows
    from stepcredit.data.rows import read_rows
    from stepcredit.data.tables import write_clean, write_funnel

    counts = Funnel()
    with _maybe_record("clean", manifest, MODULES["clean"], inputs=[source], outputs=[out, funnel]):
        write_clean(out, clean_rows(read_rows(source), counts))
        write_funnel(funnel, counts)
    for stage, rows in counts.stages():
        print(f"{rows:>8}  {stage}")


@commands.command("split")
def split(
    settings: Settings,
    clean: Annotated[Path, typer.Option(help="Parquet of clean demonstrations.")],
    out_dir: OutDir,
    manifest: Manifest,
) -> None:
    """Write demonstrations, and RL, validation and held-out puzzles: no puzzle serves two purposes."""
    from stepcredit.data.splits import split as split_rows
    from stepcredit.data.tables import read_clean, write_clean, write_puzzles

    data = DataSettings.model_validate_json(settings)
    paths = {name: out_dir / f"{name}.parquet" for name in ("demonstrations", "rl", "validation", "heldout")}
    with record(
        "split",
        manifest,
        modules=MODULES["split"],
        inputs=[clean],
        outputs=paths.values(),
        settings=data,
        seed=data.seed,
    ):
        result = split_rows(read_clean(clean), data)
        write_clean(paths["demonstrations"], result.demonstrations)
        for name in ("rl", "validation", "heldout"):
            write_puzzles(paths[name], getattr(result, name))
    for name in paths:
        print(f"{len(getattr(result, name)):>8}  {name}")


@commands.command("grade")
def grade(
    source: Annotated[str, typer.Option("--in", help="JSONL with nums, target, completion; - reads stdin.")],
    out: Annotated[str, typer.Option(help="The same with reward, answer, reason; - writes stdout.")],
) -> None:
    """Grade completions with the verifier that RL and evaluation use."""
    from stepcredit.data.grading import grade_lines

    name = "standard input" if source == "-" else source
    with _open_input(source) as lines, _open_output(out) as output:
        for line in grade_lines(lines, name):
            output.write(line)
            if out == "-":
                output.flush()


def _maybe_record(
    stage: str, manifest: Path | None, modules: tuple[str, ...], inputs: list[Path], outputs: list[Path]
) -> contextlib.AbstractContextManager[Record | None]:
    if manifest is None:
        return contextlib.nullcontext()
    return record(stage, manifest, modules=modules, inputs=inputs, outputs=outputs)


@contextlib.contextmanager
def _open_input(name: str) -> Iterator[Iterable[bytes]]:
    if name == "-":
        yield sys.stdin.buffer
        return
    try:
        stream = Path(name).open("rb")  # noqa: SIM115 - only opening it is the user's mistake
    except OSError as error:
        raise UserError(f"{name}: cannot be read ({error.strerror})") from error
    with stream:
        yield stream


@contextlib.contextmanager
def _open_output(name: str) -> Iterator[IO[bytes]]:
    if name == "-":
        yield sys.stdout.buffer
        return
    with atomic_path(Path(name)) as temporary, temporary.open("wb") as stream:
        yield stream
