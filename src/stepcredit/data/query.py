"""The puzzle in the text of a prompt, for sources that give it no other way."""

from __future__ import annotations

import re

from stepcredit.countdown.puzzle import Puzzle

_INTEGER = r"[0-9]{1,9}(?!\.?[0-9])"
_SEPARATOR = r"(?:,[ \t]*and[ \t]+|[ \t]+and[ \t]+|,[ \t]*|[ \t]+)"
_LIST = rf"{_INTEGER}(?:{_SEPARATOR}{_INTEGER})+"

_NUMBERS = re.compile(rf"\bnumbers?\b(?:[ \t]+are)?[ \t]*:?[ \t]*[\[({{]?[ \t]*({_LIST})", re.IGNORECASE)
_TARGET = re.compile(
    r"\b(?:equals?(?:[ \t]+to)?|makes?|reach(?:es)?|obtains?|gets?|calculate|results?[ \t]+in"
    r"|target(?:[ \t]+(?:number|value))?(?:[ \t]+(?:is|of))?)"
    rf"[ \t]*[:=]?[ \t]*({_INTEGER})",
    re.IGNORECASE,
)


def parse_query(query: str) -> Puzzle | None:
    """The one puzzle that a prompt states, or None if it states none, or more than one.

    Numbers are the list of two or more integers after the word "number(s)", in brackets or not. The target is
    the integer after "equals", "equal to", "make(s)", "reach(es)", "obtain", "get", "calculate", "results in"
    or "target (number|value) (is|of)". A prompt may repeat itself, but not contradict itself.
    """
    lists = {tuple(map(int, re.findall("[0-9]+", found))) for found in _NUMBERS.findall(query)}
    targets = {int(found) for found in _TARGET.findall(query)}
    if len(lists) != 1 or len(targets) != 1:
        return None
    return Puzzle(nums=lists.pop(), target=targets.pop())


def query_text(puzzle: Puzzle) -> str:
    """The prompt of a puzzle in the words of the public data set."""
    return (
        f"Using the numbers [{', '.join(map(str, puzzle.nums))}], create an equation that equals"
        f" {puzzle.target}.\nUse each number exactly once. Only use +, -, *, / and parentheses."
    )
