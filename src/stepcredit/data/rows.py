"""Raw rows: what every source gives and cleaning takes, and how they are read from a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepcredit.provenance.errors import UserError

READERS = {".jsonl": "json", ".parquet": "parquet"}
"""Suffix of a file -> the reader of the `datasets` library for it."""

RESPONSE_COLUMNS = ("response", "response_ws")
"""Names of the column of responses, the first that a file has; `response_ws` is the hub's preferred one."""


@dataclass(frozen=True)
class RawRow:
    """One demonstration as it came, unchecked.

    Attributes:
        nums: the puzzle's numbers, or None where only `query` says them.
        target: its target, likewise.
        query: the prompt as text; empty where there is none.
        response: reasoning and answer as text; empty where there is none.
    """

    nums: tuple[int, ...] | None
    target: int | None
    query: str
    response: str


def read_rows(path: Path) -> Iterator[RawRow]:
    """Read a JSONL or Parquet file with a column of responses and either `nums` and `target` or `query`.

    Other columns are left aside. The file is read in parts, and no copy of it is kept.

    Raises:
        UserError: the file cannot be read, lacks these columns, or holds a value of another type.
    """
    rows = _read_file(path)
    for index, row in enumerate(rows):
        if index == 0:
            require_columns(row, str(path))
        yield raw_row(row, f"{path}: row {index + 1}")


def require_columns(columns: Mapping[str, Any], where: str) -> None:
    """Refuse a table that has no responses or no puzzles.

    Raises:
        UserError: names the columns found and those needed.
    """
    has_response = any(name in columns for name in RESPONSE_COLUMNS)
    has_puzzle = "query" in columns or ("nums" in columns and "target" in columns)
    if not (has_response and has_puzzle):
        raise UserError(
            f"{where}: has the columns {', '.join(columns) or '(none)'}; give a column"
            f" {' or '.join(RESPONSE_COLUMNS)}, and either nums and target, or query"
        )


def raw_row(row: Mapping[str, Any], where: str) -> RawRow:
    """Take the columns that matter out of a row; nulls become None or an empty text.

    Raises:
        UserError: a value is of another type; the message names the place, `where`.
    """
    response = next((row[name] for name in RESPONSE_COLUMNS if name in row), None)
    nums = row.get("nums")
    if nums is not None and not isinstance(nums, list | tuple):
        raise UserError(f"{where}: nums is {nums!r}; give a list of integers")
    return RawRow(
        nums=None if nums is None else tuple(_integer(number, "nums", where) for number in nums),
        target=None if row.get("target") is None else _integer(row["target"], "target", where),
        query=_text(row.get("query"), "query", where),
        response=_text(response, "response", where),
    )


def _integer(value: object, column: str, where: str) -> int:
    # A column of integers with gaps comes back as floats from many writers.
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise UserError(f"{where}: {column} holds {value!r}; give integers")


def _text(value: object, column: str, where: str) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    raise UserError(f"{where}: {column} is {value!r}; give text")


def _read_file(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file as the `datasets` library reads them."""
    if path.suffix not in READERS:
        raise UserError(f"{path}: the name must end in {' or '.join(READERS)}")
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    import datasets

    try:
        yield from datasets.load_dataset(READERS[path.suffix], data_files=str(path), split="train", streaming=True)
    except (OSError, ValueError, TypeError, datasets.exceptions.DatasetsError) as error:
        reason = error.__cause__ or error
        raise UserError(f"{path}: cannot be read as {path.suffix[1:]} ({reason})") from error
