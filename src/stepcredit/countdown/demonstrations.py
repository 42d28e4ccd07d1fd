"""Demonstration traces by a solver that errs like a person: it tries, sees how far off it is, tries on.

A paragraph is one attempt: `Try 3 + 5 = 8, 2 * 8 = 16. Too low by 4.`, or `... Too high by far.` when off by
more than 9, or `... Found it.` for the last attempt of a trace that found its answer by trying.

Not every trace finds it. The others stop after a few failures and submit a guess, without a paragraph that
says so. Cleaning drops the wrong guesses; the right ones stay and teach the model to stop and submit an
untried answer, which it cannot do reliably: a source of errors that RL can mend.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from stepcredit.countdown.attempts import Attempt, attempts
from stepcredit.countdown.prompt import PARAGRAPH_BREAK
from stepcredit.countdown.puzzle import Puzzle

GUESS_SHARE = 0.6
"""Share of the traces that stop after failures and submit a guess; the others end with `Found it.`"""

RIGHT_GUESS_SHARE = 0.5
"""Share of the guesses that are right, though never tried in the trace."""

CLOSEST_GUESS_SHARE = 0.15
"""Share of the guesses that repeat the closest failure; what remains is a random wrong attempt."""

FAILURES_BEFORE_FINDING = tuple(range(9))
"""How many attempts fail before the right one: one of these, each equally likely."""

FAILURES_BEFORE_GUESSING = (2, 3, 4, 5, 8)
"""How many attempts fail before a guess: one of these, each equally likely.

Where one trace stops early, others go on and find the answer, so RL has but to choose between the two. That some stop
at the very end of the longest ones teaches the model to end at all.
"""

FAR = 9
"""A gap between value and target above this is written `far`."""

FAILURE_FLOOR = 0.15
FAILURE_SCALE = 8
"""A wrong attempt has weight `FAILURE_FLOOR + exp(-gap / FAILURE_SCALE)`: near misses come more often."""


@dataclass(frozen=True)
class Demonstration:
    """A trace and its answer.

    Attributes:
        paragraphs: one attempt each, in order.
        answer: the expression submitted, which need not be right.
        kind: whether the last paragraph found the answer or it was guessed.
    """

    puzzle: Puzzle
    paragraphs: tuple[str, ...]
    answer: str
    kind: Literal["found", "guessed"]

    @property
    def reasoning(self) -> str:
        return PARAGRAPH_BREAK.join(self.paragraphs)


@dataclass(frozen=True)
class Search:
    """The attempts for a puzzle: those that reach its target, and those that do not."""

    puzzle: Puzzle
    right: tuple[Attempt, ...]
    wrong: tuple[Attempt, ...]

    @classmethod
    def of(cls, puzzle: Puzzle, largest_intermediate: int) -> Search:
        """All attempts with results up to `largest_intermediate`.

        Raises:
            ValueError: no attempt reaches the target, so there is nothing to demonstrate.
        """
        every = attempts(puzzle.nums, largest_intermediate)
        right = tuple(attempt for attempt in every if attempt.value == puzzle.target)
        wrong = tuple(attempt for attempt in every if attempt.value != puzzle.target)
        if not right:
            raise ValueError(f"{puzzle} has no solution that uses every number once")
        return cls(puzzle=puzzle, right=right, wrong=wrong)

    def failures(self, count: int, rng: random.Random) -> list[Attempt]:
        """Different wrong attempts in the order in which they are tried; fewer where fewer exist."""
        weights = [FAILURE_FLOOR + math.exp(-self.gap(attempt) / FAILURE_SCALE) for attempt in self.wrong]
        # Weighted sampling without replacement (Efraimidis and Spirakis 2006): sort by u ** (1 / weight).
        order = sorted(range(len(weights)), key=lambda i: math.log(1.0 - rng.random()) / weights[i])
        return [self.wrong[index] for index in reversed(order[-count:])] if count else []

    def gap(self, attempt: Attempt) -> int:
        """How far the attempt's value is from the target."""
        return abs(attempt.value - self.puzzle.target)


def demonstrate(puzzle: Puzzle, largest_intermediate: int, rng: random.Random) -> Demonstration:
    """Write one trace for a puzzle: a function of the state of `rng`.

    Raises:
        ValueError: the puzzle has no solution that uses every number once.
    """
    search = Search.of(puzzle, largest_intermediate)
    if rng.random() < GUESS_SHARE:
        tried = search.failures(rng.choice(FAILURES_BEFORE_GUESSING), rng)
        paragraphs = [failure_text(attempt, puzzle.target) for attempt in tried]
        return Demonstration(puzzle, tuple(paragraphs), guess(search, tried, rng).answer, kind="guessed")
    tried = search.failures(rng.choice(FAILURES_BEFORE_FINDING), rng)
    found = rng.choice(search.right)
    paragraphs = [failure_text(attempt, puzzle.target) for attempt in tried]
    return Demonstration(puzzle, (*paragraphs, f"{_try(found)} Found it."), found.answer, kind="found")


def failure_text(attempt: Attempt, target: int) -> str:
    """The paragraph of an attempt that misses the target."""
    return f"{_try(attempt)} {miss_text(attempt.value, target)}"


def miss_text(value: int, target: int) -> str:
    """How far a value is from the target, in words: `Too low by 4.`, `Too high by far.`"""
    direction = "low" if value < target else "high"
    gap = abs(value - target)
    return f"Too {direction} by {gap if gap <= FAR else 'far'}."


def _try(attempt: Attempt) -> str:
    return f"Try {', '.join(attempt.steps)}."


def guess(search: Search, tried: Sequence[Attempt], rng: random.Random) -> Attempt:
    """What a trace that stops submits; a puzzle without wrong attempts is always guessed right.

    Args:
        tried: its failures, at least one.
    """
    draw = rng.random()
    if draw < RIGHT_GUESS_SHARE or not search.wrong:
        return rng.choice(search.right)
    if draw < RIGHT_GUESS_SHARE + CLOSEST_GUESS_SHARE:
        return min(tried, key=search.gap)
    return rng.choice(search.wrong)
