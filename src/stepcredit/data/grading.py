"""Grading rows of JSON Lines, one at a time: the verifier for whoever brings their own completions."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from stepcredit.countdown.puzzle import Puzzle
from stepcredit.countdown.verifier import grade
from stepcredit.provenance.errors import UserError

COLUMNS = ("nums", "target", "completion")
ADVICE = "give one JSON object a line, with nums (list of integers), target (integer) and completion (text)"


def grade_lines(lines: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Grade each line and give it back with `reward`, `answer` and `reason` set, other keys as they were.

    Args:
        lines: objects with `nums`, `target` and `completion`, in UTF-8; blank lines are passed over.
        name: what the lines come from, for messages.

    Raises:
        UserError: a line cannot be graded; names the line and says what to do.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = _read(line)
            verdict = grade(row["completion"], Puzzle.from_values(row["nums"], row["target"]))
        except (ValueError, RecursionError) as error:
            raise UserError(f"{name}: line {number}: {error}; {ADVICE}") from None
        row.update(reward=verdict.reward, answer=verdict.answer, reason=verdict.reason)
        yield _write(row)


def _read(line: bytes) -> dict[str, Any]:
    """The object of a line.

    Raises:
        ValueError: the line is no such object; says what is wrong with it.
    """
    try:
        row = json.loads(line.strip().decode("utf-8"), parse_constant=_refuse_constant, parse_float=_finite)
    except ValueError as error:
        raise ValueError(f"is not JSON ({error})") from None
    if not isinstance(row, dict):
        raise ValueError("is not a JSON object")
    missing = [column for column in COLUMNS if column not in row]
    if missing:
        raise ValueError(f"has no {' and no '.join(missing)}")
    if not isinstance(row["completion"], str):
        raise ValueError("completion must be text")
    return row


def _write(row: dict[str, Any]) -> bytes:
    text = json.dumps(row, ensure_ascii=False)
    try:
        return f"{text}\n".encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can escape and UTF-8 cannot hold
        return f"{json.dumps(row)}\n".encode()


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is too large a number")
    return value
