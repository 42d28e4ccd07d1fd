"""CSV tables: written the same way each time, read back with numbers as numbers."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stepcredit.evaluation.statistics import Interval
from stepcredit.provenance.errors import UserError
from stepcredit.provenance.files import atomic_path

Row = dict[str, Any]
DIGITS = 6
"""Significant digits of a float in a CSV file."""


def write_rows(path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Write exactly `columns`; floats with six significant digits, None and NaN as an empty field."""
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_text(row[column]) for column in columns] for row in rows)


def read_rows(path: Path) -> list[Row]:
    """Read a table; integers and floats become numbers, an empty field becomes None.

    Raises:
        UserError: the file is not there.
    """
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            return [{key: _value(text) for key, text in row.items()} for row in csv.DictReader(stream)]
    except FileNotFoundError:
        raise UserError(f"{path}: missing; it is written by `stepcredit tables`") from None


def interval_cells(interval: Interval) -> Row:
    return {"mean": interval.mean, "low": interval.low, "high": interval.high}


def _text(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        rounded = f"{value:.{DIGITS}g}"
        return "0" if float(rounded) == 0 else rounded
    return str(value)


def _value(text: str | None) -> Any:
    if text is None or text == "":
        return None
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text, text)
