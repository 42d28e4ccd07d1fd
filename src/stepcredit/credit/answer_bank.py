"""The answer bank: every answer that a group submitted, as tokens, the correct apart from the incorrect.

Source: CPAS, "Answer bank". The bank is a multiset: an answer that three rollouts submitted counts three
times in the mean inside LSE, and is scored once. A rollout that hit the token cap, or is malformed, submits
nothing. The optional reference answer of the write-up is not in it.

What is scored of an answer includes the closing tag, which says that the answer ends there. Without it
`3 + 5` would be credited with the probability of every answer that begins with it, `3 + 5 * 2` among them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from stepcredit.countdown.expression import BLANKS
from stepcredit.countdown.prompt import SOLUTION_CLOSE, SOLUTION_OPEN
from stepcredit.credit.token_text import Pieces, TokenText
from stepcredit.rollouts import Group

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class BankedAnswer:
    """An answer of a bank.

    Attributes:
        token_ids: its tokens, without surrounding blanks and tags.
        text: as the verifier read it.
        correct: whether the verifier accepted it.
        count: how many rollouts of the group submitted it.
    """

    token_ids: Tokens
    text: str
    correct: bool
    count: int


@dataclass(frozen=True)
class AnswerBank:
    """The answers of a group, B+ and B-, neither empty; those with the same tokens are one, counted."""

    correct: tuple[BankedAnswer, ...]
    incorrect: tuple[BankedAnswer, ...]

    @property
    def answers(self) -> tuple[BankedAnswer, ...]:
        """First the correct, then the incorrect."""
        return self.correct + self.incorrect


def answer_bank(group: Group, tokens: TokenText) -> AnswerBank | None:
    """The bank of a group; None if homogeneous: all submitted answers correct, or all incorrect, or none."""
    counts: Counter[tuple[Tokens, str, bool]] = Counter()
    for rollout in group.rollouts:
        answer = rollout.verdict.answer
        if answer is not None:
            counts[answer_tokens(rollout.completion.token_ids, answer, tokens), answer, rollout.reward > 0] += 1
    answers = [BankedAnswer(*key, count) for key, count in counts.items()]
    correct = tuple(answer for answer in answers if answer.correct)
    incorrect = tuple(answer for answer in answers if not answer.correct)
    return AnswerBank(correct, incorrect) if correct and incorrect else None


def answer_tokens(token_ids: Tokens, answer: str, tokens: TokenText) -> Tokens:
    """The tokens of the submitted `answer`: the completion's own, so that what is scored is what was sampled.

    Where a token holds both answer and tag, the answer has no tokens of its own: its text is encoded anew.
    """
    completion = Pieces(tokens.pieces(token_ids))
    before, tag, rest = completion.text.partition(SOLUTION_OPEN)
    inside = rest.partition(SOLUTION_CLOSE)[0]
    words = inside.strip(BLANKS)
    if not tag or not words:
        return tuple(tokens.encode(answer))
    opened = len(before) + len(tag)
    start = opened + inside.index(words)
    first, last = completion.token_at(start), completion.token_at(start + len(words) - 1)
    if completion.starts[first] < opened or completion.starts[last + 1] > opened + len(inside):
        return tuple(tokens.encode(answer))
    return token_ids[first : last + 1]
