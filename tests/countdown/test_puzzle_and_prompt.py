"""Puzzles know each other whatever the order of their numbers; the prompt keeps the order."""

from __future__ import annotations

import pytest

from stepcredit.countdown.prompt import SOLUTION_TEMPLATE, completion_text, prompt_text
from stepcredit.countdown.puzzle import Puzzle


def test_key_ignores_order_but_not_repeats() -> None:
    assert Puzzle((5, 3, 2), 16).key == Puzzle((2, 5, 3), 16).key == ((2, 3, 5), 16)
    assert Puzzle((5, 3, 3), 16).key != Puzzle((5, 5, 3), 16).key
    assert Puzzle((5, 3), 16).key != Puzzle((5, 3), 15).key


def test_prompt_shows_the_numbers_in_their_order() -> None:
    assert prompt_text(Puzzle((5, 3, 2), 16)) == "Numbers: 5 3 2\nTarget: 16\n"


def test_completion_is_a_prefix_the_template_and_the_answer() -> None:
    text = completion_text("a\n\nb", "3+5")
    assert text == "<reasoning>a\n\nb</reasoning>\n<solution>3+5</solution>"
    assert text == "<reasoning>a\n\nb" + SOLUTION_TEMPLATE + "3+5</solution>"


@pytest.mark.parametrize(
    ("nums", "target", "message"),
    [
        ("352", 16, "nums"),
        ([], 16, "nums"),
        ([3, 5.0], 16, "nums"),
        ([3, True], 16, "nums"),
        ([3, None], 16, "nums"),
        ([3, 0], 16, "positive"),
        ([3, -5], 16, "positive"),
        ([3, 5], "16", "target"),
        ([3, 5], 16.0, "target"),
        ([3, 5], True, "target"),
        ([3, 5], None, "target"),
    ],
)
def test_values_that_are_no_puzzle_are_refused(nums: object, target: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Puzzle.from_values(nums, target)


def test_values_from_a_file_make_a_puzzle() -> None:
    assert Puzzle.from_values([3, 5, 3], -2) == Puzzle((3, 5, 3), -2)
