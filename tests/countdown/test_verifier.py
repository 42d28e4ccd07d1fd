"""The verifier: what is a submission, what is right, and that nothing makes it raise or hang."""

from __future__ import annotations

import string
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepcredit.countdown.prompt import TAGS, completion_text
from stepcredit.countdown.puzzle import Puzzle
from stepcredit.countdown.verifier import REASONS, TRUNCATED, Verdict, grade, judge

PUZZLE = Puzzle(nums=(3, 5, 2), target=16)
RIGHT = "(3+5)*2"


def reason(answer: str, nums: tuple[int, ...] = (3, 5, 2), target: int = 16) -> str:
    return grade(completion_text("Try.", answer), Puzzle(nums, target)).reason


def test_a_right_answer_earns_one_and_is_reported_without_surrounding_blanks() -> None:
    verdict = grade(completion_text("Try.\n\nFound it.", f" \n{RIGHT}\t"), PUZZLE)
    assert verdict == Verdict(reward=1.0, answer=RIGHT, well_formed=True, reason="correct")


def test_a_wrong_answer_is_submitted_all_the_same() -> None:
    verdict = grade(completion_text("", "3+5"), PUZZLE)
    assert verdict == Verdict(reward=0.0, answer="3+5", well_formed=True, reason="wrong value")


@pytest.mark.parametrize(
    ("answer", "nums", "target", "expected"),
    [
        # Not all numbers need be used; the value is exact.
        ("97 - 79", (97, 79, 25, 75), 18, "correct"),
        ("16", (16, 2), 16, "correct"),
        ("5/3*3", (5, 3, 3), 5, "correct"),
        ("8/(3-8/3)", (8, 3, 8, 3), 24, "correct"),
        ("1/3", (1, 3), 0, "wrong value"),
        ("1000001/1000000", (1_000_001, 1_000_000), 1, "wrong value"),
        ("3-5", (3, 5), -2, "correct"),
        # Power, floor division and decimals.
        ("2**3", (3, 5, 2), 8, "syntax"),
        ("7//2+1", (7, 2, 1), 4, "syntax"),
        ("3.5*2", (3, 5, 2), 7, "invalid token"),
        (".5*2", (5, 2), 1, "invalid token"),
        ("5*1.000001", (5, 1), 5, "invalid token"),
        # Functions and comments.
        ("factorial(3)", (3,), 6, "invalid token"),
        ("3!+5", (3, 5), 11, "invalid token"),
        ("sqrt(9)+5", (9, 5), 8, "invalid token"),
        ("3+5 # 2", (3, 5, 2), 8, "invalid token"),
        # Equations and chains of steps.
        ("(3+5)*2 = 16", (3, 5, 2), 16, "invalid token"),
        ("(3+5)*2 = 16.", (3, 5, 2), 16, "invalid token"),
        ("16 = (3+5)*2", (3, 5, 2), 16, "invalid token"),
        ("79 - 60 = 19, 19 + 17 = 36", (79, 60, 17), 36, "invalid token"),
        # Unicode and LaTeX.
        ("(3+5)×2", (3, 5, 2), 16, "invalid token"),
        ("(3+5)\\times 2", (3, 5, 2), 16, "invalid token"),
        ("\\frac{32}{2}", (32, 2), 16, "invalid token"),
        ("(３+5)*2", (3, 5, 2), 16, "invalid token"),
        ("(3＋5)*2", (3, 5, 2), 16, "invalid token"),
        # Numbers are whole: no part of one, no two put together.
        ("1+1", (16, 11), 2, "number not given"),
        ("35", (3, 5), 35, "number not given"),
        # A number may be used as often as it is given.
        ("3+3", (3, 5), 6, "number overused"),
        ("3+3", (3, 3), 6, "correct"),
        ("3+3+3", (3, 3), 9, "number overused"),
        # Unary signs, leading zeros, implicit products.
        ("--3+5", (3, 5), 8, "syntax"),
        ("-3+5", (3, 5), 2, "syntax"),
        ("007", (7,), 7, "invalid token"),
        ("2(3+5)", (3, 5, 2), 16, "syntax"),
        # Division by zero.
        ("5/(3-3)", (5, 3, 3), 5, "division by zero"),
        ("5/(3-3)*0", (5, 3, 3, 0), 0, "division by zero"),
        # Blow-ups.
        ("9**9**9", (9, 9, 9), 9, "syntax"),
        ("9" * 10_000, (9,), 9, "too long"),
        ("(" * 100_000 + "16" + ")" * 100_000, (16,), 16, "too long"),
        ("(" * 300 + "16" + ")" * 300, (16,), 16, "correct"),
        ("9*" * 900 + "9", (9,), 9, "number overused"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_every_kind_of_answer_that_fooled_another_grader(
    answer: str, nums: tuple[int, ...], target: int, expected: str
) -> None:
    assert reason(answer, nums, target) == expected


@pytest.mark.parametrize(
    "completion",
    [
        f"<reasoning></reasoning><solution>{RIGHT}</solution>",
        f" \r\n<reasoning>a\n\nb</reasoning> \n\n\t<solution>{RIGHT}</solution>\n",
        f"<reasoning>a <think> b </answer> <Solution></reasoning>\n<solution>{RIGHT}</solution>",
    ],
)
def test_well_formed_completions_submit(completion: str) -> None:
    assert grade(completion, PUZZLE).reward == 1.0


@pytest.mark.parametrize(
    "completion",
    [
        "",
        RIGHT,
        f"<solution>{RIGHT}</solution>",
        f"</reasoning>\n<solution>{RIGHT}</solution>",
        f"a</reasoning>\n<solution>{RIGHT}</solution>",
        f"<reasoning>a<solution>{RIGHT}</solution>",
        f"<reasoning>a</reasoning>{RIGHT}",
        f"<reasoning>a</reasoning><solution>{RIGHT}",
        f"<reasoning>a</reasoning><solution>{RIGHT}<solution>",
        f"<solution>{RIGHT}</solution><reasoning>a</reasoning>",
        f"<reasoning>a<solution>{RIGHT}</solution></reasoning>",
        f"<reasoning>a<solution>{RIGHT}</solution></reasoning><solution>{RIGHT}</solution>",
        f"<reasoning>a</reasoning><solution>{RIGHT}</solution><solution>{RIGHT}</solution>",
        f"<reasoning>a</reasoning><solution><solution>{RIGHT}</solution></solution>",
        f"<reasoning>a</reasoning><reasoning>b</reasoning><solution>{RIGHT}</solution>",
        f"<reasoning>a<reasoning>b</reasoning><solution>{RIGHT}</solution>",
        f"<reasoning>a</reasoning><solution></reasoning>{RIGHT}</solution>",
        f"<reasoning>a<solution></reasoning>{RIGHT}</solution>",
        f"text<reasoning>a</reasoning><solution>{RIGHT}</solution>",
        f"<reasoning>a</reasoning>text<solution>{RIGHT}</solution>",
        f"<reasoning>a</reasoning><solution>{RIGHT}</solution>text",
        f"<reasoning>a</reasoning>\xa0<solution>{RIGHT}</solution>",
        f"<REASONING>a</REASONING><SOLUTION>{RIGHT}</SOLUTION>",
        f"<reasoning >a</reasoning><solution>{RIGHT}</solution>",
        f"<reasoning>a</reasoning>< solution>{RIGHT}</solution>",
        f'<reasoning>a</reasoning><solution id="1">{RIGHT}</solution>',
        f"<think>a</think><answer>{RIGHT}</answer>",
    ],
)
def test_any_other_form_submits_nothing(completion: str) -> None:
    assert grade(completion, PUZZLE) == Verdict(reward=0.0, answer=None, well_formed=False, reason="malformed")


@pytest.mark.parametrize("blank", ["", " ", "\n\t", "\r\n", "\f\v"])
def test_a_blank_solution_submits_nothing(blank: str) -> None:
    assert grade(completion_text("a", blank), PUZZLE) == Verdict(
        reward=0.0, answer=None, well_formed=False, reason="empty"
    )


def test_a_truncated_completion_submits_nothing() -> None:
    assert Verdict(reward=0.0, answer=None, well_formed=False, reason="truncated") == TRUNCATED


def test_numbers_too_large_for_pythons_integers_from_text_are_compared() -> None:
    huge = 10**5000
    assert grade(completion_text("", "3+5"), Puzzle((3, 5, huge), 8)).reward == 1.0
    assert grade(completion_text("", "3+5"), Puzzle((3, 5), huge)).reason == "wrong value"


pieces = st.sampled_from([*TAGS, "3", "5", "2", "(", ")", "+", "-", "*", "/", " ", "\n", "0", "9" * 300, "=", "×"])


@settings(max_examples=400)
@given(st.lists(pieces, max_size=40).map("".join) | st.text(max_size=80), st.booleans())
def test_any_text_gets_a_verdict_that_holds_together(text: str, wrapped: bool) -> None:
    verdict = grade(completion_text("a", text) if wrapped else text, PUZZLE)
    assert verdict.reason in REASONS
    assert verdict.reward == (verdict.reason == "correct")
    assert verdict.well_formed == (verdict.answer is not None)
    if verdict.reward:
        assert verdict.answer is not None
        assert set(verdict.answer) <= set("352+-*/() \t\n")


def test_no_garbage_takes_twenty_milliseconds() -> None:
    import random

    rng = random.Random(0)
    alphabets = (string.printable, "0123456789+-*/()", "()", "9", "1/", "".join(TAGS))
    many = Puzzle(nums=(1, 9) * 1000, target=16)
    slowest = 0.0
    for index in range(600):
        alphabet = alphabets[index % len(alphabets)]
        text = "".join(rng.choices(alphabet, k=rng.choice((10, 100, 2000, 20_000))))
        completion = completion_text("a", text)
        started = time.thread_time()
        grade(completion, many)
        slowest = max(slowest, time.thread_time() - started)
    assert slowest < 0.02


@pytest.mark.parametrize("answer", ["1/" * 999 + "9", "9*" * 999 + "1", "9-1/" * 499 + "9"], ids=["/", "*", "-/"])
def test_the_longest_legal_calculation_is_quick(answer: str) -> None:
    puzzle = Puzzle(nums=(1, 9) * 1000, target=16)
    started = time.thread_time()
    assert judge(answer, puzzle) == "wrong value"
    assert time.thread_time() - started < 0.02
