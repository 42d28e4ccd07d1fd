"""Demonstration traces: their text says what is true, and their kinds come in the stated shares."""

from __future__ import annotations

import math
import random
import re

import pytest

from stepcredit.countdown.attempts import Attempt, attempts
from stepcredit.countdown.demonstrations import (
    FAILURES_BEFORE_GUESSING,
    GUESS_SHARE,
    RIGHT_GUESS_SHARE,
    Search,
    demonstrate,
    failure_text,
)
from stepcredit.countdown.expression import parse
from stepcredit.countdown.puzzle import Puzzle
from stepcredit.countdown.verifier import judge

PUZZLE = Puzzle(nums=(3, 5, 8), target=16)
PARAGRAPH = re.compile(
    r"Try (\d+ [-+*/] \d+ = \d+(?:, \d+ [-+*/] \d+ = \d+)+)\. (?:(Found it)|Too (low|high) by ([1-9]|far))\."
)


def many(count: int = 3000) -> list:
    rng = random.Random(0)
    return [demonstrate(PUZZLE, 100, rng) for _ in range(count)]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (12, "Try 1 + 2 = 3. Too low by 4."),
        (7, "Try 1 + 2 = 3. Too low by 9."),
        (6, "Try 1 + 2 = 3. Too low by far."),
        (17, "Try 1 + 2 = 3. Too high by 1."),
        (26, "Try 1 + 2 = 3. Too high by far."),
    ],
)
def test_the_gap_is_told_up_to_nine(value: int, text: str) -> None:
    assert failure_text(Attempt(("1 + 2 = 3",), value, "1 + 2"), target=16) == text


def test_every_paragraph_says_what_is_true() -> None:
    for demonstration in many(500):
        *others, last = demonstration.paragraphs
        for paragraph in demonstration.paragraphs:
            found = PARAGRAPH.fullmatch(paragraph)
            assert found, paragraph
            steps, success, direction, gap = found.groups()
            for step in steps.split(", "):
                calculation, result = step.split(" = ")
                assert parse(calculation).value() == int(result)
            off = int(result) - PUZZLE.target
            if success:
                assert paragraph is last
                assert off == 0
            else:
                assert direction == ("high" if off > 0 else "low")
                assert gap == (str(abs(off)) if abs(off) <= 9 else "far")
        assert len(set(others)) == len(others), "an attempt was tried twice"


def test_found_traces_submit_what_they_found_and_guesses_were_not_announced() -> None:
    for demonstration in many(500):
        if demonstration.kind == "found":
            last = demonstration.paragraphs[-1]
            assert last.endswith("Found it.")
            assert judge(demonstration.answer, PUZZLE) == "correct"
        else:
            assert not any("Found" in paragraph for paragraph in demonstration.paragraphs)
            assert len(demonstration.paragraphs) in FAILURES_BEFORE_GUESSING


def test_kinds_come_in_the_stated_shares() -> None:
    demonstrations = many()
    guesses = [demonstration for demonstration in demonstrations if demonstration.kind == "guessed"]
    right = [demonstration for demonstration in guesses if judge(demonstration.answer, PUZZLE) == "correct"]
    assert len(guesses) / len(demonstrations) == pytest.approx(GUESS_SHARE, abs=0.03)
    assert len(right) / len(guesses) == pytest.approx(RIGHT_GUESS_SHARE, abs=0.05)


def test_near_misses_are_tried_before_far_ones() -> None:
    search = Search.of(PUZZLE, 100)
    rng = random.Random(0)
    gaps = [search.gap(search.failures(3, rng)[0]) for _ in range(5000)]
    weights = [0.15 + math.exp(-search.gap(attempt) / 8) for attempt in search.wrong]
    expected = sum(weight * search.gap(attempt) for weight, attempt in zip(weights, search.wrong, strict=True))
    assert sum(gaps) / len(gaps) == pytest.approx(expected / sum(weights), rel=0.04)


def test_failures_are_drawn_without_repeats_and_run_out() -> None:
    search = Search.of(PUZZLE, 100)
    tried = search.failures(1000, random.Random(0))
    assert sorted(attempt.answer for attempt in tried) == sorted(attempt.answer for attempt in search.wrong)
    assert search.failures(0, random.Random(0)) == []


def test_a_trace_is_a_function_of_the_seed() -> None:
    assert demonstrate(PUZZLE, 100, random.Random(7)) == demonstrate(PUZZLE, 100, random.Random(7))
    assert many(20) != [demonstrate(PUZZLE, 100, random.Random(1)) for _ in range(20)]


def test_a_puzzle_without_solution_is_refused() -> None:
    with pytest.raises(ValueError, match="no solution"):
        demonstrate(Puzzle((1, 2, 3), 99), 100, random.Random(0))


def test_four_numbers_make_three_steps() -> None:
    puzzle = Puzzle((2, 3, 5, 7), next(a.value for a in attempts((2, 3, 5, 7), 100) if a.value > 10))
    demonstration = demonstrate(puzzle, 100, random.Random(0))
    assert all(paragraph.count("=") == 3 for paragraph in demonstration.paragraphs)
