"""A rollout's reasoning split into paragraphs, the steps that receive credit (CPAS, "Contrastive potential
advantage shaping").

The reasoning is every token before the one in which `</reasoning>` begins; where it never comes, the whole
completion but its trailing tokens without text (the end-of-sequence token). Text after it, the tail, is no
paragraph.

A paragraph ends after a blank line, whose tokens belong to it, and after `max_paragraph_len` tokens even
inside a word: without that guard the policy learns to avoid blank lines (CPAS, "Reward hacking: gaming the
steps"). Works with any tokenizer: a token that holds a blank line ends its paragraph, whatever else it holds.

Deviation from the write-up: a boundary is scored without the blank line before it, so that the template that
opens the solution follows text, as it does in whole rollouts. A token that holds both text and the blank line
stays.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from stepcredit.countdown.prompt import REASONING_CLOSE, REASONING_OPEN
from stepcredit.credit.token_text import Pieces

BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+")
SENTENCE_ENDS = re.compile(r"[.!?]+(?!\d)(?:\n(?:[ \t]*\n)*)?|" + BLANK_LINES.pattern)
"""Where sentences end, the line breaks after them included; the point of `4.8` ends none."""

Unit = Literal["paragraph", "sentence"]
_ENDS: dict[Unit, re.Pattern[str]] = {"paragraph": BLANK_LINES, "sentence": SENTENCE_ENDS}

Span = tuple[int, int]


@dataclass(frozen=True)
class Paragraphs:
    """The paragraphs of one completion.

    Attributes:
        spans: [paragraphs] (start, end) in tokens of the completion: none empty, each starting where the one
            before it ends, the first at 0.
        prefixes: [paragraphs + 1] lengths in tokens of the completion: what stands before the template when
            boundary n is scored. Boundary 0 is CPAS's empty prefix: the opening tag `<reasoning>` alone, or
            nothing where the completion does not begin with it or one token holds its end and text.
        closing: (start, end) of the tokens that hold `</reasoning>`, right after the last paragraph; empty where
            it never comes.
    """

    spans: tuple[Span, ...]
    prefixes: tuple[int, ...]
    closing: Span = (0, 0)


def split_paragraphs(pieces: Sequence[str], max_paragraph_len: int | None, unit: Unit = "paragraph") -> Paragraphs:
    """Split the reasoning of a completion, given as the text of each token.

    No paragraph is blank unless the guard cuts it from a long run of blanks, or the whole reasoning is blank.

    Args:
        max_paragraph_len: longest paragraph in tokens; None for no guard.
        unit: with `sentence`, a paragraph ends after each sentence too.
    """
    completion = Pieces(pieces)
    end = _reasoning_end(completion)
    cuts = [0, *_cuts(completion, end, _ENDS[unit]), end] if end else [0]
    spans = [
        (first, min(first + step, stop))
        for start, stop in pairwise(cuts)
        for step in [max_paragraph_len or stop - start]
        for first in range(start, stop, step)
    ]
    opening = _opening_length(completion, end)
    prefixes = [opening, *(_prefix_length(completion, stop, opening) for _, stop in spans)]
    return Paragraphs(tuple(spans), tuple(prefixes), (end, _closing_end(completion, end)))


def _reasoning_end(completion: Pieces) -> int:
    """Number of tokens of the reasoning."""
    closing = completion.text.find(REASONING_CLOSE)
    if closing >= 0:
        return completion.token_at(closing)
    return completion.token_at(len(completion.text) - 1) + 1


def _closing_end(completion: Pieces, end: int) -> int:
    """Where the tokens of `</reasoning>` end, which begin at `end`; `end` where it never comes."""
    closing = completion.text.find(REASONING_CLOSE)
    return end if closing < 0 else completion.token_at(closing + len(REASONING_CLOSE) - 1) + 1


def _cuts(completion: Pieces, end: int, ends: re.Pattern[str]) -> list[int]:
    """Where paragraphs end, strictly between 0 and `end`: at blank lines, or whatever else `ends` finds."""
    limit = completion.starts[end]
    cuts: list[int] = []
    start = 0
    for blank in ends.finditer(completion.text, 0, limit):
        cut = completion.token_at(blank.end() - 1) + 1
        if cut > start and _has_words(completion.text[completion.starts[start] : blank.start()]):
            cuts.append(cut)
            start = cut
    if cuts and not _has_words(completion.text[completion.starts[start] : limit]):
        cuts.pop()
    return cuts


def _has_words(text: str) -> bool:
    return bool(text.strip().removeprefix(REASONING_OPEN).strip())


def _opening_length(completion: Pieces, end: int) -> int:
    """Tokens up to the end of the opening tag, 0 if they cannot be told from the reasoning."""
    before, tag, after = completion.text.partition(REASONING_OPEN)
    if not tag or before.strip():
        return 0
    tag_end = len(before) + len(tag)
    length = completion.token_at(tag_end - 1) + 1
    shared = after[: completion.starts[length] - tag_end]
    return 0 if shared.strip() or length > end else length


def _prefix_length(completion: Pieces, length: int, opening: int) -> int:
    """`length` without trailing blank tokens, but never less than the opening tag."""
    while length > opening and not completion.pieces[length - 1].strip():
        length -= 1
    return max(length, opening)
