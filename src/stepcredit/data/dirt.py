"""Raw responses as public data sets have them: in `<think>` and `<answer>` tags, and some of them dirty.

The dirt is deliberate: it gives cleaning the work that public data would, of known kinds and in known shares.
Answers with Unicode operators or an `= ...` tail are mended by cleaning, the other kinds are dropped.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from stepcredit.countdown.demonstrations import Demonstration

_UNICODE = str.maketrans({"-": "\N{MINUS SIGN}", "*": "\N{MULTIPLICATION SIGN}", "/": "\N{DIVISION SIGN}"})
_INTEGER = re.compile("[0-9]+")


def clean_response(demonstration: Demonstration) -> str:
    """The response without dirt."""
    return _response(demonstration.reasoning, demonstration.answer)


def dirty_response(demonstration: Demonstration, rng: random.Random) -> str:
    """The response with dirt of one kind, each equally likely."""
    return rng.choice(DIRT)(demonstration, rng)


def unicode_operators(demonstration: Demonstration, rng: random.Random) -> str:
    """Operators other than + as typesetters write them."""
    return _response(demonstration.reasoning, demonstration.answer.translate(_UNICODE))


def equation_tail(demonstration: Demonstration, rng: random.Random) -> str:
    """The answer with `= target` after it."""
    return _response(demonstration.reasoning, f"{demonstration.answer} = {demonstration.puzzle.target}")


def wrong_value(demonstration: Demonstration, rng: random.Random) -> str:
    """Every number once, the larger subtracted from the smallest: below zero, so never the target."""
    return _response(demonstration.reasoning, " - ".join(map(str, sorted(demonstration.puzzle.nums))))


def reused_number(demonstration: Demonstration, rng: random.Random) -> str:
    """One number of the answer replaced by another of the puzzle, which then occurs twice."""
    found = rng.choice(list(_INTEGER.finditer(demonstration.answer)))
    other = rng.choice([number for number in demonstration.puzzle.nums if str(number) != found.group()])
    answer = demonstration.answer
    return _response(demonstration.reasoning, f"{answer[: found.start()]}{other}{answer[found.end() :]}")


def missing_number(demonstration: Demonstration, rng: random.Random) -> str:
    """All numbers but one, added up."""
    some = rng.sample(demonstration.puzzle.nums, len(demonstration.puzzle.nums) - 1)
    return _response(demonstration.reasoning, " + ".join(map(str, some)))


def broken_tags(demonstration: Demonstration, rng: random.Random) -> str:
    """One tag left out."""
    tag = rng.choice(("<think>", "</think>", "<answer>", "</answer>"))
    return clean_response(demonstration).replace(tag, "")


DIRT: tuple[Callable[[Demonstration, random.Random], str], ...] = (
    unicode_operators,
    equation_tail,
    wrong_value,
    reused_number,
    missing_number,
    broken_tags,
)
"""The kinds of dirt."""


def _response(reasoning: str, answer: str) -> str:
    return f"<think>{reasoning}</think>\n<answer>{answer}</answer>"
