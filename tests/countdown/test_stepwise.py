"""Traces of one operation a paragraph: what they say is true, and the numbers they name are those that remain."""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest

from stepcredit.countdown.demonstrations import miss_text
from stepcredit.countdown.puzzle import Puzzle
from stepcredit.countdown.stepwise import demonstrate_steps
from stepcredit.countdown.verifier import judge
from stepcredit.modeling.tokenizer import UNKNOWN, TextCodec, build_tokenizer

PUZZLES = [Puzzle((3, 5, 2), 16), Puzzle((3, 5, 8), 16), Puzzle((2, 3, 5, 7), 24), Puzzle((1, 4, 4, 9), 52)]
PARAGRAPH = re.compile(r"Try (\d+) ([-+*/]) (\d+) = (\d+)\.(?: (Too \w+ by \w+\.))?(?: Left ([\d ]+)\.)?( Found it\.)?")
CALCULATE = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b}


def many(puzzle: Puzzle, count: int = 200) -> list:
    rng = random.Random(0)
    return [demonstrate_steps(puzzle, 100, rng) for _ in range(count)]


@pytest.mark.parametrize("puzzle", PUZZLES, ids=str)
def test_every_paragraph_follows_from_the_numbers_that_the_one_before_it_left(puzzle: Puzzle) -> None:
    for demonstration in many(puzzle):
        path = [Counter(puzzle.nums)]
        for paragraph in demonstration.paragraphs:
            match = PARAGRAPH.fullmatch(paragraph)
            assert match, paragraph
            left, operator, right, result, miss, named, found = match.groups()
            assert CALCULATE[operator](int(left), int(right)) == int(result)
            used = Counter([int(left), int(right)])
            assert not used - path[-1]
            remaining = path[-1] - used + Counter([int(result)])
            if found:
                assert remaining == Counter([puzzle.target])
            elif miss:
                assert remaining.total() == 1
                assert miss == miss_text(int(result), puzzle.target)
            if named and miss:
                back = Counter(map(int, named.split()))
                assert back in path  # only to numbers that the path has been at
                path = path[: path.index(back) + 1]
            elif named:
                assert Counter(map(int, named.split())) == remaining
                path.append(remaining)


@pytest.mark.parametrize("puzzle", PUZZLES, ids=str)
def test_what_is_found_is_right_and_guesses_are_sometimes_wrong(puzzle: Puzzle) -> None:
    traces = many(puzzle)
    kinds = Counter((trace.kind, judge(trace.answer, puzzle) == "correct") for trace in traces)
    assert kinds["found", False] == 0
    assert kinds["found", True] > 50
    assert kinds["guessed", True] > 0 < kinds["guessed", False]
    assert all(("Found it" in trace.paragraphs[-1]) == (trace.kind == "found") for trace in traces)


def test_searches_go_wrong_and_back_but_not_for_ever() -> None:
    lengths = [len(trace.paragraphs) for trace in many(PUZZLES[2], 400)]
    assert min(lengths) == 3  # straight to the answer
    assert 12 < max(lengths) <= 20


def test_the_tokenizer_knows_every_word() -> None:
    codec = TextCodec(build_tokenizer(100))
    for trace in many(PUZZLES[3], 50):
        ids = codec.encode(trace.reasoning)
        assert codec.tokenizer.convert_tokens_to_ids(UNKNOWN) not in ids
        assert codec.decode(ids) == trace.reasoning
