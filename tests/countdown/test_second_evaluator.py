"""The verifier and an evaluator that shares no code with it agree on whatever is submitted."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from second_evaluator import is_right, value

from stepcredit.countdown.expression import ExpressionError, parse
from stepcredit.countdown.prompt import TAGS, completion_text
from stepcredit.countdown.puzzle import Puzzle
from stepcredit.countdown.verifier import grade

numbers = st.lists(st.integers(0, 30), min_size=1, max_size=5)


@st.composite
def submissions(draw: st.DrawFn) -> tuple[str, tuple[int, ...], int]:
    """An expression over some numbers, a little damaged in half of the cases, and the value it had as target."""
    nums = draw(numbers)
    parts = [str(number) for number in draw(st.permutations(nums))]
    while len(parts) > 1:
        place = draw(st.integers(0, len(parts) - 2))
        joined = parts[place] + draw(st.sampled_from("+-*/")) + parts[place + 1]
        parts[place : place + 2] = [f"({joined})" if draw(st.booleans()) else joined]
    text = parts[0]
    found = value(text)
    target = found[0][0] // found[0][1] if found else draw(st.integers(0, 100))
    if draw(st.booleans()):
        place = draw(st.integers(0, len(text)))
        text = text[:place] + draw(st.text("0123456789+-*/() =\n.×", max_size=2)) + text[place + 1 :]
    return text, tuple(nums), target


@settings(max_examples=500, deadline=None)
@given(submissions())
def test_expressions_are_judged_alike(submission: tuple[str, tuple[int, ...], int]) -> None:
    text, nums, target = submission
    completion = completion_text("a", text)
    assert grade(completion, Puzzle(nums, target)).reward == is_right(completion, nums, target)
    try:
        exact = parse(text).value()
    except (ExpressionError, ZeroDivisionError):
        assert value(text) is None
    else:
        found = value(text)
        assert found is not None
        (top, bottom), _ = found
        assert exact * bottom == top


pieces = st.sampled_from([*TAGS, "3", "5", "2", "(3+5)*2", " ", "\n", "\v", "\xa0", "a", "<", "reasoning>"])


@settings(max_examples=500, deadline=None)
@given(st.lists(pieces, max_size=12).map("".join), st.booleans())
def test_forms_are_judged_alike(text: str, wrapped: bool) -> None:
    completion = f"<reasoning>a</reasoning>{text}<solution>(3+5)*2</solution>" if wrapped else text
    assert grade(completion, Puzzle((3, 5, 2), 16)).reward == is_right(completion, (3, 5, 2), 16)


def test_the_second_evaluator_can_tell_right_from_wrong() -> None:
    right, wrong = completion_text("a", "(3+5)*2"), completion_text("a", "3+5*2")
    assert is_right(right, (3, 5, 2), 16)
    assert not is_right(wrong, (3, 5, 2), 16)
    assert not is_right(right, (3, 5), 16)


def test_the_script_of_a_million_answers_runs() -> None:
    seed = random.randrange(10**6)
    script = Path(__file__).parents[2] / "benchmarks/fuzz_verifier.py"
    command = [sys.executable, str(script), "--answers", "2000", "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"seed {seed}: {done.stdout}{done.stderr}"
    assert "2000 answers, 0 exceptions, 0 disagreements" in done.stdout
