"""Parquet files of a run: written atomically, read as puzzles or rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from stepcredit.countdown.puzzle import Puzzle
from stepcredit.provenance.errors import UserError
from stepcredit.provenance.files import atomic_path


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]], schema: pa.Schema | None = None) -> None:
    """Write one row a mapping; the columns are those of the schema, or of the first row."""
    with atomic_path(path) as temporary:
        pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), temporary)


def read_puzzles(path: Path) -> list[Puzzle]:
    """The puzzles of a Parquet file with the columns `nums` and `target`, in order.

    Raises:
        UserError: the file cannot be read or has no such columns.
    """
    try:
        table = pq.read_table(path, columns=["nums", "target"])
    except (OSError, pa.ArrowException) as error:
        raise UserError(f"{path}: cannot be read as a table of puzzles ({error})") from error
    return [
        Puzzle(tuple(nums), target)
        for nums, target in zip(table["nums"].to_pylist(), table["target"].to_pylist(), strict=True)
    ]
