"""All the ways to use every number of a puzzle once, and all the puzzles that have such a solution.

Everything is enumerated, nothing is drawn and rejected: how many puzzles exist is known before any is used.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from stepcredit.countdown.puzzle import Puzzle


@dataclass(frozen=True, slots=True)
class Attempt:
    """One way to combine all the numbers of a puzzle.

    Attributes:
        steps: the calculations in order, e.g. `("3 + 5 = 8", "2 * 8 = 16")`.
        value: what the last one gives.
        answer: the same as one expression, e.g. `2 * (3 + 5)`.
    """

    steps: tuple[str, ...]
    value: int
    answer: str


@dataclass(frozen=True)
class PuzzleSpace:
    """Puzzles of `numbers` distinct numbers from 1..`largest_number`, with a target within its bounds.

    The target can be reached with every number used once and every result an integer within
    1..`largest_intermediate`. A target that is itself one of the numbers is left out.
    """

    numbers: int
    largest_number: int
    smallest_target: int
    largest_target: int
    largest_intermediate: int

    def puzzles(self) -> list[Puzzle]:
        """Every puzzle once, the numbers in increasing order, by numbers and then by target."""
        return [
            Puzzle(nums=nums, target=target)
            for nums in itertools.combinations(range(1, self.largest_number + 1), self.numbers)
            for target in sorted({attempt.value for attempt in attempts(nums, self.largest_intermediate)})
            if self.smallest_target <= target <= self.largest_target and target not in nums
        ]


@dataclass(frozen=True, slots=True)
class Operand:
    """A number of a puzzle, or what a calculation with them gave."""

    value: int
    text: str

    @property
    def inside(self) -> str:
        """The operand as part of a larger expression: a calculation stands in parentheses."""
        return self.text if self.text.isdigit() else f"({self.text})"


@lru_cache(maxsize=512)
def attempts(nums: tuple[int, ...], largest_intermediate: int) -> tuple[Attempt, ...]:
    """Every attempt for these numbers with results within 1..`largest_intermediate`, each answer once.

    Sums and products are written smaller operand first, so that each fact of arithmetic has one form.
    """
    start = tuple(Operand(value=number, text=str(number)) for number in nums)
    states: list[tuple[tuple[Operand, ...], tuple[str, ...]]] = [(start, ())]
    for _ in range(len(nums) - 1):
        states = [
            ((*rest, result), (*steps, step))
            for operands, steps in states
            for left, right, rest in pairs(operands)
            for result, step in combinations(left, right, largest_intermediate)
        ]
    found = {operands[0].text: Attempt(steps, operands[0].value, operands[0].text) for operands, steps in states}
    return tuple(found.values())


def pairs(
    operands: tuple[Operand, ...],
) -> Iterator[tuple[Operand, Operand, tuple[Operand, ...]]]:
    """Every pair of operands, the smaller value first, and the operands left over."""
    for first, second in itertools.combinations(range(len(operands)), 2):
        left, right = sorted((operands[first], operands[second]), key=lambda operand: operand.value)
        yield left, right, tuple(o for i, o in enumerate(operands) if i not in (first, second))


def combinations(small: Operand, large: Operand, largest: int) -> Iterator[tuple[Operand, str]]:
    """What two operands give, and the calculation as text: results are integers within 1..`largest`."""
    yield from _calculation(small, "+", large, small.value + large.value, largest)
    yield from _calculation(small, "*", large, small.value * large.value, largest)
    yield from _calculation(large, "-", small, large.value - small.value, largest)
    if small.value > 1 and large.value % small.value == 0:
        yield from _calculation(large, "/", small, large.value // small.value, largest)


def _calculation(
    left: Operand, operator: str, right: Operand, value: int, largest: int
) -> Iterator[tuple[Operand, str]]:
    if 0 < value <= largest:
        text = f"{left.inside} {operator} {right.inside}"
        yield Operand(value, text), f"{left.value} {operator} {right.value} = {value}"
