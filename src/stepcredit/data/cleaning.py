"""Cleaning of demonstrations: what SFT learns from is right, uses every number once, and is in one form.

Source: CPAS, "SFT stage". The rule, for the answer: write Unicode operators in ASCII (`OPERATORS`), strip a
trailing `= ...` (all from the first equals sign), allow only arithmetic characters, require every number of
the puzzle exactly once, and the target as exact value. A row that passes is rewritten to
`<reasoning>...</reasoning>`, newline, `<solution>...</solution>`, with nothing outside; its reasoning is kept
as it is, apart from blank lines. Nothing else is repaired: LaTeX, full-width digits and the like are dropped.

Every dropped row is counted under exactly one reason, the first of `DROP_REASONS` that applies, so
kept + dropped = read.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from stepcredit.countdown.expression import Expression, ExpressionError, parse
from stepcredit.countdown.prompt import completion_text, prompt_text
from stepcredit.countdown.puzzle import Puzzle
from stepcredit.data.elements import ResponseError, take_apart, tidy_paragraphs
from stepcredit.data.query import parse_query
from stepcredit.data.rows import RawRow

OPERATORS = {
    "+": "\N{FULLWIDTH PLUS SIGN}",
    "-": "\N{MINUS SIGN}\N{EN DASH}\N{HYPHEN}\N{NON-BREAKING HYPHEN}\N{FULLWIDTH HYPHEN-MINUS}",
    "*": (
        "\N{MULTIPLICATION SIGN}\N{MIDDLE DOT}\N{DOT OPERATOR}\N{BULLET OPERATOR}\N{ASTERISK OPERATOR}"
        "\N{MULTIPLICATION X}\N{HEAVY MULTIPLICATION X}\N{FULLWIDTH ASTERISK}"
    ),
    "/": "\N{DIVISION SIGN}\N{DIVISION SLASH}\N{FRACTION SLASH}\N{FULLWIDTH SOLIDUS}",
}
"""ASCII operator -> the Unicode characters that are written as it."""

DROP_REASONS = (
    "no response",
    "puzzle unreadable",
    "no answer element",
    "several answer elements",
    "broken tags",
    "tag in the reasoning",
    "empty answer",
    "LaTeX in the answer",
    "other characters in the answer",
    "answer too long",
    "not an expression",
    "number not given",
    "number reused",
    "number missing",
    "division by zero",
    "wrong value",
)
"""Why rows are dropped, in the order in which it is decided."""

_TO_ASCII = str.maketrans({sign: ascii_ for ascii_, signs in OPERATORS.items() for sign in signs})
_ARITHMETIC = frozenset("0123456789+-*/() \t\n")
_LATEX = frozenset("\\$")


class Dropped(Exception):  # noqa: N818 - a verdict on a row, not an error
    """A row is left out, for one of `DROP_REASONS`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class CleanRow:
    """A demonstration in the form that SFT learns: completing `prompt` with `completion`."""

    puzzle: Puzzle
    completion: str

    @property
    def prompt(self) -> str:
        return prompt_text(self.puzzle)


@dataclass
class Funnel:
    """How many rows were read, dropped for each reason, and kept."""

    read: int = 0
    dropped: Counter[str] = field(default_factory=Counter)

    @property
    def kept(self) -> int:
        return self.read - self.dropped.total()

    def stages(self) -> list[tuple[str, int]]:
        """`read`, every drop reason in order, those without rows included, and `kept`."""
        reasons = [(reason, self.dropped[reason]) for reason in DROP_REASONS]
        return [("read", self.read), *reasons, ("kept", self.kept)]


def clean(rows: Iterable[RawRow], funnel: Funnel) -> Iterator[CleanRow]:
    """The rows that pass, in order; `funnel` counts as they go by."""
    for row in rows:
        funnel.read += 1
        try:
            kept = clean_row(row)
        except Dropped as drop:
            funnel.dropped[drop.reason] += 1
        else:
            yield kept


def clean_row(row: RawRow) -> CleanRow:
    """Clean one row.

    Raises:
        Dropped: with the first reason that applies.
    """
    if not row.response.strip():
        raise Dropped("no response")
    puzzle = _puzzle(row)
    try:
        reasoning, answer = take_apart(row.response)
    except ResponseError as error:
        raise Dropped(str(error)) from None
    normalised = normalise_answer(answer)
    _require_solution(_parse(normalised), puzzle)
    return CleanRow(puzzle=puzzle, completion=completion_text(tidy_paragraphs(reasoning), normalised))


def normalise_answer(answer: str) -> str:
    """The answer with ASCII operators, without a trailing `= ...`, with single spaces.

    Raises:
        Dropped: nothing is left, or a character outside arithmetic is.
    """
    text = answer.translate(_TO_ASCII).partition("=")[0].strip(string.whitespace)
    if not text:
        raise Dropped("empty answer")
    others = set(text) - _ARITHMETIC
    if others & _LATEX:
        raise Dropped("LaTeX in the answer")
    if others:
        raise Dropped("other characters in the answer")
    return " ".join(text.split())


def _puzzle(row: RawRow) -> Puzzle:
    """The puzzle of a row: its columns where it has them, else the text of its prompt."""
    if row.nums is None and row.target is None:
        puzzle = parse_query(row.query)
        if puzzle is None:
            raise Dropped("puzzle unreadable")
        row = RawRow(puzzle.nums, puzzle.target, row.query, row.response)
    try:
        return Puzzle.from_values(row.nums, row.target)
    except ValueError:
        raise Dropped("puzzle unreadable") from None


def _parse(answer: str) -> Expression:
    try:
        return parse(answer)
    except ExpressionError as error:
        raise Dropped("answer too long" if error.fault == "too long" else "not an expression") from None


def _require_solution(expression: Expression, puzzle: Puzzle) -> None:
    given = Counter(puzzle.nums)
    used = Counter(expression.numbers)
    if used.keys() - given.keys():
        raise Dropped("number not given")
    if used - given:
        raise Dropped("number reused")
    if given - used:
        raise Dropped("number missing")
    try:
        value = expression.value()
    except ZeroDivisionError:
        raise Dropped("division by zero") from None
    if value != puzzle.target:
        raise Dropped("wrong value")
