"""A Countdown puzzle: some numbers and the target to reach with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, TypeGuard

PuzzleKey: TypeAlias = tuple[tuple[int, ...], int]


@dataclass(frozen=True)
class Puzzle:
    """Positive integers, repeats allowed, and the integer to reach with + - * / and parentheses.

    Attributes:
        nums: the numbers, in the order in which the prompt shows them.
        target: the value to reach.
    """

    nums: tuple[int, ...]
    target: int

    @property
    def key(self) -> PuzzleKey:
        """Identity up to the order of the numbers."""
        return tuple(sorted(self.nums)), self.target

    @classmethod
    def from_values(cls, nums: object, target: object) -> Puzzle:
        """A puzzle from values of unknown type, as read from a file.

        Raises:
            ValueError: the values are no puzzle; the message says which one is wrong.
        """
        if not isinstance(nums, list | tuple) or not nums or not all(map(_is_integer, nums)):
            raise ValueError("nums must be a list of one or more integers")
        if min(nums) < 1:
            raise ValueError("nums must be positive")
        if not _is_integer(target):
            raise ValueError("target must be an integer")
        return cls(nums=tuple(nums), target=target)


def _is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
