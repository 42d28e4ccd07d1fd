"""Whether a file can be read as what its name says it is, without loading it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path


def format_problem(path: Path) -> str | None:
    """What keeps a Parquet, safetensors or JSON file from being read; None: nothing, or another kind."""
    checker = CHECKERS.get(path.suffix)
    try:
        return checker(path) if checker else None
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        return f"cannot be read as {path.suffix[1:]}: {_first_line(error)}"


def _parquet(path: Path) -> str | None:
    import pyarrow.parquet as pq

    pq.read_metadata(path)
    return None


def _json(path: Path) -> str | None:
    json.loads(path.read_bytes())
    return None


def _safetensors(path: Path) -> str | None:
    """Layout: eight bytes of header length, a JSON header with each tensor's byte range, the tensors."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if size < 8 or length > size - 8:
            return f"cannot be read as safetensors: the header is cut off at {size} bytes"
        header = json.loads(stream.read(length))
    ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    expected = 8 + length + max(ends, default=0)
    return None if size == expected else f"cannot be read as safetensors: {size} bytes, not {expected}"


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


CHECKERS: dict[str, Callable[[Path], str | None]] = {
    ".parquet": _parquet,
    ".safetensors": _safetensors,
    ".json": _json,
}
"""Suffix of a format to what looks at a file of it."""
