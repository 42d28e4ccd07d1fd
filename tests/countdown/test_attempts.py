"""Enumeration of attempts and puzzles, against brute force and numbers counted by hand."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest

from stepcredit.countdown.attempts import PuzzleSpace, attempts
from stepcredit.countdown.expression import parse


def brute_force(nums: tuple[int, ...], largest: int) -> set[int]:
    """Values within reach: all orders, all operators, both shapes, positive integers all the way."""
    reachable = set()
    for order in itertools.permutations(nums):
        for text in itertools.product("+-*/", repeat=2):
            a, b, c = order
            for first, second in (
                (f"{a}{text[0]}{b}", f"({a}{text[0]}{b}){text[1]}{c}"),
                (f"{b}{text[1]}{c}", f"{a}{text[0]}({b}{text[1]}{c})"),
            ):
                try:
                    values = (parse(first).value(), parse(second).value())
                except ZeroDivisionError:
                    continue
                if all(value.denominator == 1 and 0 < value <= largest for value in values):
                    reachable.add(int(values[1]))
    return reachable


@pytest.mark.parametrize("nums", [(1, 2, 3), (2, 4, 8), (3, 5, 7), (6, 10, 15), (4, 4, 4)])
def test_three_numbers_reach_what_brute_force_reaches(nums: tuple[int, ...]) -> None:
    assert {attempt.value for attempt in attempts(nums, 100)} == brute_force(nums, 100)


@pytest.mark.parametrize("nums", [(3, 5, 8), (2, 3, 4, 6)])
def test_every_attempt_uses_every_number_once_and_its_answer_has_its_value(nums: tuple[int, ...]) -> None:
    found = attempts(nums, 100)
    for attempt in found:
        expression = parse(attempt.answer)
        assert sorted(expression.numbers) == sorted(nums)
        assert expression.value() == attempt.value
        assert len(attempt.steps) == len(nums) - 1
        for step in attempt.steps:
            calculation, result = step.split(" = ")
            assert parse(calculation).value() == Fraction(result)
            assert 1 <= int(result) <= 100
        assert attempt.steps[-1].endswith(f" = {attempt.value}")
    assert len({attempt.answer for attempt in found}) == len(found)


def test_two_numbers_by_hand() -> None:
    # 2 + 6, 2 * 6, 6 - 2, 6 / 2: sums and products smaller first, no negative and no fraction.
    assert [attempt.answer for attempt in attempts((6, 2), 100)] == ["2 + 6", "2 * 6", "6 - 2", "6 / 2"]
    assert [attempt.answer for attempt in attempts((6, 2), 8)] == ["2 + 6", "6 - 2", "6 / 2"]


def test_dividing_by_one_is_no_attempt_beside_multiplying_by_it() -> None:
    assert [attempt.answer for attempt in attempts((1, 6), 100)] == ["1 + 6", "1 * 6", "6 - 1"]


def test_four_numbers_come_in_both_shapes() -> None:
    answers = {attempt.answer for attempt in attempts((1, 2, 3, 4), 100)}
    assert "(1 + 2) * (3 + 4)" in answers
    assert "4 * (3 + (1 + 2))" in answers or "4 * ((1 + 2) + 3)" in answers


def test_the_space_holds_each_reachable_puzzle_once() -> None:
    space = PuzzleSpace(3, largest_number=6, smallest_target=10, largest_target=40, largest_intermediate=50)
    puzzles = space.puzzles()
    expected = {
        (nums, target)
        for nums in itertools.combinations(range(1, 7), 3)
        for target in brute_force(nums, 50)
        if 10 <= target <= 40
    }
    assert {puzzle.key for puzzle in puzzles} == expected
    assert len(puzzles) == len(expected)


def test_a_target_among_the_numbers_is_no_puzzle() -> None:
    # 1 * 3 * 4 = 12 and 12 - 1 ... but never a number of the puzzle itself as its target.
    space = PuzzleSpace(3, largest_number=12, smallest_target=1, largest_target=12, largest_intermediate=50)
    assert all(puzzle.target not in puzzle.nums for puzzle in space.puzzles())
    assert any(puzzle.target == 12 for puzzle in space.puzzles())


def test_the_number_of_puzzles_of_the_published_nano_setting() -> None:
    # Counted independently before this code was written: 2,325 for 1..12.
    space = PuzzleSpace(3, largest_number=12, smallest_target=10, largest_target=99, largest_intermediate=100)
    assert len(space.puzzles()) == 2325
