"""Taking a response apart: its reasoning and its answer, by their tags."""

from __future__ import annotations

import re

from stepcredit.countdown.prompt import (
    PARAGRAPH_BREAK,
    REASONING_CLOSE,
    REASONING_OPEN,
    SOLUTION_CLOSE,
    SOLUTION_OPEN,
    TAGS,
)

ANSWER_TAGS = (("<answer>", "</answer>"), (SOLUTION_OPEN, SOLUTION_CLOSE))
THINK_OPEN, THINK_CLOSE = "<think>", "</think>"

_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+")


class ResponseError(ValueError):
    """A response has not one reasoning and one answer; the message is the reason to drop it."""


def take_apart(response: str) -> tuple[str, str]:
    """The reasoning and the answer of a response, both as they stand there.

    The answer is the text of the one `<answer>` element, or where there is none of the one `<solution>`
    element; text after it is left out. The reasoning is the text before it: where that has a `<think>`
    element, the text of this; where it is a `<reasoning>` element, the text of that.

    Raises:
        ResponseError: with the reason to drop the response.
    """
    opening, closing = _answer_tags(response)
    if response.count(opening) > 1 or response.count(closing) > 1:
        raise ResponseError("several answer elements")
    before, answer = _split_element(response, opening, closing)
    reasoning = _unwrap(before)
    if any(tag in reasoning for tag in TAGS):
        raise ResponseError("tag in the reasoning")
    return reasoning, answer


def tidy_paragraphs(reasoning: str) -> str:
    """The reasoning with one blank line between paragraphs, none at its ends, and newlines as on Unix."""
    text = reasoning.replace("\r\n", "\n").replace("\r", "\n")
    return _BLANK_LINES.sub(PARAGRAPH_BREAK, text).strip()


def _answer_tags(response: str) -> tuple[str, str]:
    for opening, closing in ANSWER_TAGS:
        if opening in response or closing in response:
            return opening, closing
    raise ResponseError("no answer element")


def _unwrap(before: str) -> str:
    """The text before the answer without the element it stands in."""
    if THINK_OPEN in before or THINK_CLOSE in before:
        if before.count(THINK_OPEN) > 1 or before.count(THINK_CLOSE) > 1:
            raise ResponseError("broken tags")
        return _split_element(before, THINK_OPEN, THINK_CLOSE)[1]
    text = before.strip()
    opened, closed = text.startswith(REASONING_OPEN), text.endswith(REASONING_CLOSE)
    if opened != closed:
        raise ResponseError("broken tags")
    return text[len(REASONING_OPEN) : -len(REASONING_CLOSE)] if opened else text


def _split_element(text: str, opening: str, closing: str) -> tuple[str, str]:
    """What stands before an element and in it, for tags that occur once at most."""
    before, found, rest = text.partition(opening)
    inside, closed, _ = rest.partition(closing)
    if not found or not closed:
        raise ResponseError("broken tags")
    return before, inside
