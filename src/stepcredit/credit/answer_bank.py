"""The answer bank: every answer that a group submitted, as tokens, the correct apart from the incorrect.

Source: CPAS, "Answer bank". The bank is a multiset: an answer that three rollouts submitted counts three
times in the mean inside LSE, and is scored once. A rollout that hit the token cap, or is malformed, submits
nothing. The write-up's optional reference answer joins the correct ones where the settings say so.

What is scored of an answer includes the closing tag, which says that the answer ends there. Without it
`3 + 5` would be credited with the probability of every answer that begins with it, `3 + 5 * 2` among them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from stepcredit.countdown.expression import BLANKS
from stepcredit.countdown.prompt import SOLUTION_CLOSE, SOLUTION_OPEN
from stepcredit.countdown.reference import reference_answer
from stepcredit.credit.token_text import Pieces, TokenText
from stepcredit.rollouts import Group, Rollout

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

    def counts(self, without: tuple[Tokens, str, bool] | None = None) -> tuple[list[int], list[int]]:
        """How often each correct and each incorrect answer counts, one submission of `without` left out."""
        correct, incorrect = (
            [answer.count - ((answer.token_ids, answer.text, answer.correct) == without) for answer in side]
            for side in (self.correct, self.incorrect)
        )
        return correct, incorrect

    @property
    def answers(self) -> tuple[BankedAnswer, ...]:
        """First the correct, then the incorrect."""
        return self.correct + self.incorrect


def answer_bank(
    group: Group, tokens: TokenText, reference: Literal["never", "all_incorrect", "always"] = "never"
) -> AnswerBank | None:
    """The bank of a group; None if homogeneous: all submitted answers correct, or all incorrect, or none.

    Args:
        reference: when a reference answer joins the correct ones, counted as one more submission: `all_incorrect`
            where answers were submitted and none was correct (CPAS, footnote 1), `always` in every group.
    """
    keys = [key for rollout in group.rollouts if (key := answer_key(rollout, tokens)) is not None]
    none_correct = not any(correct for _, _, correct in keys)
    if reference == "always" or (reference == "all_incorrect" and none_correct):
        text = reference_answer(group.puzzle)
        keys += [(tuple(tokens.encode(text)), text, True)] if text else []
    answers = [BankedAnswer(*key, count) for key, count in Counter(keys).items()]
    correct = tuple(answer for answer in answers if answer.correct)
    incorrect = tuple(answer for answer in answers if not answer.correct)
    return AnswerBank(correct, incorrect) if correct and incorrect else None


def answer_key(rollout: Rollout, tokens: TokenText) -> tuple[Tokens, str, bool] | None:
    """Tokens, text and verdict of what a rollout submitted; None if it submitted nothing."""
    answer = rollout.verdict.answer
    if answer is None:
        return None
    return answer_tokens(rollout.completion.token_ids, answer, tokens), answer, rollout.reward > 0


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
