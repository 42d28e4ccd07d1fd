"""A reference answer of a puzzle: what a data set would give beside it."""

from __future__ import annotations

import itertools
from functools import lru_cache

from stepcredit.countdown.attempts import attempts
from stepcredit.countdown.puzzle import Puzzle

MOST_NUMBERS = 4
"""Puzzles of more numbers have too many attempts to go through."""

LARGEST_INTERMEDIATE = 10_000


@lru_cache(maxsize=4096)
def reference_answer(puzzle: Puzzle) -> str | None:
    """The first shortest answer that uses as many of the numbers as possible, with positive integers throughout.

    None where there is no such answer, or the puzzle has more than four numbers.
    """
    if len(puzzle.nums) > MOST_NUMBERS:
        return None
    for size in range(len(puzzle.nums), 0, -1):
        right = [
            attempt.answer
            for nums in itertools.combinations(puzzle.nums, size)
            for attempt in attempts(nums, LARGEST_INTERMEDIATE)
            if attempt.value == puzzle.target
        ]
        if right:
            return min(right, key=len)
    return None
