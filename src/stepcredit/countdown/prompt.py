"""The text around a puzzle: its prompt, and the tags of a completion.

The same text serves every tokenizer; nothing in it depends on one.
"""

from __future__ import annotations

from stepcredit.countdown.puzzle import Puzzle

REASONING_OPEN = "<reasoning>"
REASONING_CLOSE = "</reasoning>"
SOLUTION_OPEN = "<solution>"
SOLUTION_CLOSE = "</solution>"
TAGS = (REASONING_OPEN, REASONING_CLOSE, SOLUTION_OPEN, SOLUTION_CLOSE)

PARAGRAPH_BREAK = "\n\n"

SOLUTION_TEMPLATE = f"{REASONING_CLOSE}\n{SOLUTION_OPEN}"
"""What stands between a reasoning and its answer: opens the solution after a reasoning prefix."""


def prompt_text(puzzle: Puzzle) -> str:
    """The prompt of a puzzle, e.g. `Numbers: 3 5 2`, `Target: 16`, each line ended by a newline."""
    return f"Numbers: {' '.join(map(str, puzzle.nums))}\nTarget: {puzzle.target}\n"


def completion_text(reasoning: str, answer: str) -> str:
    """A well-formed completion: the reasoning element, a newline, the solution element, nothing outside."""
    return f"{REASONING_OPEN}{reasoning}{SOLUTION_TEMPLATE}{answer}{SOLUTION_CLOSE}"
