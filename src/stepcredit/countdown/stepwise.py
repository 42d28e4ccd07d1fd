"""Demonstration traces in which a paragraph is one operation: a depth-first search told step by step.

A paragraph combines two of the numbers at hand and names what is left: `Try 3 + 5 = 8. Left 2 8.` When one number is
left and it is not the target, the paragraph says how far off it is and to which numbers the search goes back: `Try
8 - 2 = 6. Too low by far. Left 2 3 5.` Progress is gradual here, and a wrong first operation can be fatal until the
search goes back, while in `countdown.demonstrations` a paragraph is a whole attempt. As there, a trace either finds
its answer or stops after failures and submits a guess.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from stepcredit.countdown.attempts import Attempt, Operand, combinations, pairs
from stepcredit.countdown.demonstrations import GUESS_SHARE, Demonstration, Search, guess, miss_text
from stepcredit.countdown.puzzle import Puzzle

PROMISING_SHARE = 0.25
"""How often an operation is one from which the target can still be reached, where there is such a one."""

OPERATIONS_BEFORE_GUESSING = (4, 6, 8, 10, 12)
"""After how many operations a guessing trace stops at its next failure: one of these, each equally likely."""

MOST_OPERATIONS = 12
"""After so many a trace that is to find its answer makes no more mistakes."""

State = tuple[Operand, ...]


@dataclass(frozen=True)
class _Move:
    """An operation: its text, and the numbers after it."""

    text: str
    after: State


def demonstrate_steps(puzzle: Puzzle, largest_intermediate: int, rng: random.Random) -> Demonstration:
    """Write one trace for a puzzle: a function of the state of `rng`.

    Raises:
        ValueError: the puzzle has no solution that uses every number once.
    """
    search = Search.of(puzzle, largest_intermediate)
    if rng.random() < GUESS_SHARE and search.wrong:
        walk = _Walk(puzzle, largest_intermediate, rng, stop_after=rng.choice(OPERATIONS_BEFORE_GUESSING))
        if walk.found is None:
            answer = guess(search, walk.failures, rng).answer
            return Demonstration(puzzle, tuple(walk.paragraphs), answer, kind="guessed")
    else:
        walk = _Walk(puzzle, largest_intermediate, rng, stop_after=None)
    assert walk.found is not None, "a walk without an end to its patience finds the answer"
    return Demonstration(puzzle, tuple(walk.paragraphs), walk.found, kind="found")


class _Walk:
    """One walk through the search: `paragraphs`, `failures` and, where it got there, the answer `found`."""

    def __init__(self, puzzle: Puzzle, largest: int, rng: random.Random, stop_after: int | None) -> None:
        self.paragraphs: list[str] = []
        self.failures: list[Attempt] = []
        self.found: str | None = None
        self._puzzle, self._largest, self._rng = puzzle, largest, rng
        self._missed: set[tuple[State, str]] = set()
        stack: list[State] = [tuple(Operand(number, str(number)) for number in puzzle.nums)]
        while self.found is None:
            move = self._choose(stack[-1])
            if len(move.after) > 1:
                stack.append(move.after)
                self.paragraphs.append(f"Try {move.text}. {_left(move.after)}")
                continue
            last = move.after[0]
            if last.value == puzzle.target:
                self.paragraphs.append(f"Try {move.text}. Found it.")
                self.found = last.text
                return
            self._missed.add((stack[-1], move.text))
            self.failures.append(Attempt((move.text,), last.value, last.text))
            missed = f"Try {move.text}. {miss_text(last.value, puzzle.target)}"
            if stop_after is not None and len(self.paragraphs) + 1 >= stop_after:
                self.paragraphs.append(missed)
                return
            stack = self._back(stack)
            self.paragraphs.append(f"{missed} {_left(stack[-1])}")

    def _choose(self, state: State) -> _Move:
        moves = self._moves(state)
        promising = [move for move in moves if self._hopeful(move.after)]
        careful = len(self.paragraphs) >= MOST_OPERATIONS or self._rng.random() < PROMISING_SHARE
        return self._rng.choice(promising if promising and careful else moves)

    def _back(self, stack: list[State]) -> list[State]:
        """Where a failed search goes on: at a state of its path that has moves left, near the end of its patience a
        hopeful one. The start always has: an operation that begins a solution is never missed."""
        careful = len(self.paragraphs) >= MOST_OPERATIONS
        open_ = [
            depth for depth, state in enumerate(stack) if self._moves(state) and (not careful or self._hopeful(state))
        ]
        return stack[: self._rng.choice(open_) + 1]

    def _moves(self, state: State) -> list[_Move]:
        """The operations that were not missed before and do not lead where nothing is left to try."""
        return [move for move in self._untried(state) if self._leads_on(move)]

    def _untried(self, state: State) -> Iterator[_Move]:
        return (move for move in _moves(state, self._largest) if (state, move.text) not in self._missed)

    def _leads_on(self, move: _Move) -> bool:
        return len(move.after) == 1 or any(self._leads_on(after) for after in self._untried(move.after))

    def _hopeful(self, state: State) -> bool:
        values = tuple(sorted(operand.value for operand in state))
        return self._puzzle.target in _reachable(values, self._largest)


def _left(state: State) -> str:
    return f"Left {' '.join(map(str, sorted(operand.value for operand in state)))}."


def _moves(state: State, largest: int) -> Iterator[_Move]:
    """Every operation on two of the numbers whose result is within 1..`largest`."""
    for small, large, rest in pairs(state):
        for result, text in combinations(small, large, largest):
            yield _Move(text, (*rest, result))


@lru_cache(maxsize=200_000)
def _reachable(values: tuple[int, ...], largest: int) -> frozenset[int]:
    """What numbers can give when every one is used once."""
    if len(values) == 1:
        return frozenset(values)
    state = tuple(Operand(value, str(value)) for value in values)
    found: set[int] = set()
    for move in _moves(state, largest):
        found |= _reachable(tuple(sorted(operand.value for operand in move.after)), largest)
    return frozenset(found)
