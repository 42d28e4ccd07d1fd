"""The verifier: reward 1 for a right answer, 0 for everything else. Used for RL and for evaluation alike.

What counts as a submission. A completion submits an answer iff, up to surrounding ASCII whitespace, it is
one `<reasoning>...</reasoning>`, then whitespace or nothing, then one `<solution>...</solution>`: lower case,
no attribute or space in a tag, and none of the four tags again inside either element. The answer is the text
of the solution without surrounding blanks. A solution of nothing but whitespace is no submission, so such a
completion is not well formed either; nor is one that the token cap cut off (`TRUNCATED`).

What counts as right. The answer is an expression (`countdown.expression`), every number in it is one of the
puzzle's and occurs at most as often as the puzzle gives it, not all need be used, and the exact rational
value is the target. An equation (`... = 16`) is no expression: `=` is an invalid token. Source: SPEC
section 1, and CPAS, whose examples leave numbers unused.

Grading never raises and takes bounded time: long answers are refused unread, and numbers are compared with
the puzzle's before anything is calculated, so the digits of a value never outgrow those of the answer.
"""

from __future__ import annotations

import string
from collections import Counter
from dataclasses import dataclass

from stepcredit.countdown.expression import BLANKS, ExpressionError, parse
from stepcredit.countdown.prompt import (
    REASONING_CLOSE,
    REASONING_OPEN,
    SOLUTION_CLOSE,
    SOLUTION_OPEN,
    TAGS,
)
from stepcredit.countdown.puzzle import Puzzle

REASONS = (
    "correct",
    "truncated",  # the token cap cut the completion off
    "malformed",  # not the two elements, each once, and nothing else
    "empty",  # the solution is blank
    "too long",  # more characters than are read
    "invalid token",  # a character outside arithmetic, or an integer with leading zeros
    "syntax",  # arithmetic characters that form no expression
    "number not given",
    "number overused",
    "division by zero",
    "wrong value",
)
"""Every value of `Verdict.reason`; the first that applies, in this order."""


@dataclass(frozen=True)
class Verdict:
    """What the verifier says of a completion.

    Attributes:
        reward: 1.0 for a right answer, else 0.0.
        answer: the text submitted, or None where nothing was.
        well_formed: something was submitted in the form asked for, right or wrong.
        reason: one of `REASONS`.
    """

    reward: float
    answer: str | None
    well_formed: bool
    reason: str


TRUNCATED = Verdict(reward=0.0, answer=None, well_formed=False, reason="truncated")
MALFORMED = Verdict(reward=0.0, answer=None, well_formed=False, reason="malformed")
EMPTY = Verdict(reward=0.0, answer=None, well_formed=False, reason="empty")


def grade(completion: str, puzzle: Puzzle) -> Verdict:
    """Grade a completion that ended by itself; one that hit the token cap is `TRUNCATED` instead."""
    solution = solution_text(completion)
    if solution is None:
        return MALFORMED
    if not solution.strip(string.whitespace):
        return EMPTY
    answer = solution.strip(BLANKS)
    reason = judge(answer, puzzle)
    return Verdict(reward=float(reason == "correct"), answer=answer, well_formed=True, reason=reason)


def solution_text(completion: str) -> str | None:
    """The text of the solution element, or None if the completion is not well formed."""
    text = completion.strip(string.whitespace)
    if not text.startswith(REASONING_OPEN) or not text.endswith(SOLUTION_CLOSE):
        return None
    if any(text.count(tag) != 1 for tag in TAGS):
        return None
    between_start = text.index(REASONING_CLOSE) + len(REASONING_CLOSE)
    between_end = text.index(SOLUTION_OPEN)
    if between_start > between_end or text[between_start:between_end].strip(string.whitespace):
        return None
    return text[between_end + len(SOLUTION_OPEN) : -len(SOLUTION_CLOSE)]


def judge(answer: str, puzzle: Puzzle) -> str:
    """Why an answer is right or wrong: one of `REASONS`."""
    try:
        expression = parse(answer)
    except ExpressionError as error:
        return error.fault
    given = Counter(puzzle.nums)
    used = Counter(expression.numbers)
    if any(number not in given for number in used):
        return "number not given"
    if used - given:
        return "number overused"
    try:
        value = expression.value()
    except ZeroDivisionError:
        return "division by zero"
    return "correct" if value == puzzle.target else "wrong value"
