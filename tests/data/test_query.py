"""Puzzles read from the text of prompts: the usual wordings, and no guesses."""

from __future__ import annotations

import pytest

from stepcredit.countdown.prompt import prompt_text
from stepcredit.countdown.puzzle import Puzzle
from stepcredit.data.query import parse_query, query_text


@pytest.mark.parametrize(
    ("query", "nums", "target"),
    [
        ("Using the numbers [81, 39, 28], create an equation that equals 14.", (81, 39, 28), 14),
        (
            "<|im_start|>user\nUsing the numbers [19, 36, 55, 7], create an equation that equals 65. You can"
            " use basic arithmetic operations (+, -, *, /) and each number can only be used once. Return the"
            " final answer in <answer> </answer> tags, for example <answer> (1 + 2) / 3 </answer>.<|im_end|>",
            (19, 36, 55, 7),
            65,
        ),
        ("Calculate 139 using all of these numbers: 36, 29, 95.", (36, 29, 95), 139),
        ("Find a way to make 411 using some of the numbers 3, 5 and 2.", (3, 5, 2), 411),
        ("Numbers: 3 5 2\nTarget: 16\n", (3, 5, 2), 16),
        ("Given the numbers (3, 5, 2) reach 16.", (3, 5, 2), 16),
        ("The numbers are 3, 5, and 2. The target number is 16.", (3, 5, 2), 16),
        ("Combine numbers [3, 3, 2] to an expression equal to 16", (3, 3, 2), 16),
        ("Numbers: 3 5 2\nTarget: 16. Once more: numbers 3 5 2, target 16.", (3, 5, 2), 16),
    ],
)
def test_usual_wordings(query: str, nums: tuple[int, ...], target: int) -> None:
    assert parse_query(query) == Puzzle(nums, target)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "Create an equation that equals 14.",
        "Using the numbers [81, 39, 28], create an equation.",
        "Using the numbers [81, 39, 28], create an equation that equals 14.5.",
        "Using the numbers [81], create an equation that equals 14.",
        "Using the numbers [81, 39], create an equation that equals 14 or equals 15.",
        "Numbers: 3 5 2\nTarget: 16\nNumbers: 3 5 4\n",
    ],
)
def test_prompts_without_exactly_one_puzzle_are_not_guessed_at(query: str) -> None:
    assert parse_query(query) is None


def test_our_own_prompts_are_read_back() -> None:
    puzzle = Puzzle((12, 5, 7, 7), 99)
    assert parse_query(query_text(puzzle)) == puzzle
    assert parse_query(prompt_text(puzzle)) == puzzle
