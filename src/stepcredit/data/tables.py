"""The files of the data stages: their columns, and how they are written and read back."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from stepcredit.countdown.puzzle import Puzzle
from stepcredit.data.cleaning import CleanRow, Funnel
from stepcredit.data.rows import RawRow
from stepcredit.provenance.errors import UserError
from stepcredit.provenance.files import atomic_path

_PUZZLE = [("nums", pa.list_(pa.int64())), ("target", pa.int64())]
RAW = pa.schema([*_PUZZLE, ("query", pa.string()), ("response", pa.string())])
CLEAN = pa.schema([*_PUZZLE, ("prompt", pa.string()), ("completion", pa.string())])
PUZZLES = pa.schema(_PUZZLE)

BATCH = 10_000
"""Rows held in memory at a time while writing."""


def write_raw(path: Path, rows: Iterable[RawRow]) -> int:
    """Write raw rows to a Parquet file; returns how many."""
    return _write(path, (vars(row) for row in rows), RAW)


def write_clean(path: Path, rows: Iterable[CleanRow]) -> int:
    """Write demonstrations, `.parquet` or `.jsonl`; returns how many."""
    return _write(path, map(_clean_columns, rows), CLEAN)


def write_puzzles(path: Path, puzzles: Iterable[Puzzle]) -> int:
    """Write puzzles to a Parquet file; returns how many."""
    return _write(path, map(_puzzle_columns, puzzles), PUZZLES)


def write_funnel(path: Path, funnel: Funnel) -> None:
    """Write a CSV with the columns `stage` and `rows`."""
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("stage", "rows"))
        writer.writerows(funnel.stages())


def read_clean(path: Path) -> list[CleanRow]:
    """Read what `write_clean` wrote as Parquet.

    Raises:
        UserError: the file cannot be read or has other columns.
    """
    try:
        table = pq.read_table(path, columns=["nums", "target", "completion"])
    except (OSError, pa.ArrowException) as error:
        raise UserError(f"{path}: cannot be read as clean demonstrations ({error}); make it with clean") from error
    return [CleanRow(Puzzle(tuple(row["nums"]), row["target"]), row["completion"]) for row in table.to_pylist()]


def _puzzle_columns(puzzle: Puzzle) -> dict[str, Any]:
    return {"nums": list(puzzle.nums), "target": puzzle.target}


def _clean_columns(row: CleanRow) -> dict[str, Any]:
    return {**_puzzle_columns(row.puzzle), "prompt": row.prompt, "completion": row.completion}


def _write(path: Path, rows: Iterable[Mapping[str, Any]], schema: pa.Schema) -> int:
    """Write rows to a file of the kind that its suffix says.

    Raises:
        UserError: the suffix is neither `.parquet` nor `.jsonl`.
    """
    writers = {".parquet": _write_parquet, ".jsonl": _write_jsonl}
    if path.suffix not in writers:
        raise UserError(f"{path}: the name must end in {' or '.join(writers)}")
    with atomic_path(path) as temporary:
        return writers[path.suffix](temporary, iter(rows), schema)


def _write_parquet(path: Path, rows: Iterator[Mapping[str, Any]], schema: pa.Schema) -> int:
    count = 0
    with pq.ParquetWriter(path, schema) as writer:
        while batch := list(islice(rows, BATCH)):
            writer.write_table(pa.Table.from_pylist(batch, schema=schema))
            count += len(batch)
    return count


def _write_jsonl(path: Path, rows: Iterator[Mapping[str, Any]], schema: pa.Schema) -> int:
    count = 0
    with path.open("w", encoding="utf-8", newline="") as stream:
        for row in rows:
            stream.write(json.dumps({name: row[name] for name in schema.names}, ensure_ascii=False) + "\n")
            count += 1
    return count
