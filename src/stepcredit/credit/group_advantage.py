"""The group advantage, the baseline's credit: one number for all tokens of a rollout."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from stepcredit.credit.paragraphs import split_paragraphs
from stepcredit.credit.scheme import GroupCredit, Metrics, ParagraphCredit, RolloutCredit, paragraph_texts
from stepcredit.credit.token_text import TokenText
from stepcredit.rollouts import Group, Rollout


def group_advantage(rewards: Sequence[float]) -> npt.NDArray[np.float64]:
    """A_i = r_i - mean(r): [rollouts]; no division by the standard deviation. Source: prime-rl, SPEC 3."""
    values = np.asarray(rewards, dtype=np.float64)
    return values - float(values.mean())


class GroupAdvantage:
    """Broadcasts the group advantage to every completion token; implements `CreditScheme`.

    Args:
        tokens: tells the paragraphs, which are only reported here.
        max_paragraph_len: as in `split_paragraphs`.
    """

    def __init__(self, tokens: TokenText, max_paragraph_len: int | None = None) -> None:
        self.tokens = tokens
        self.max_paragraph_len = max_paragraph_len

    def assign(self, groups: Sequence[Group]) -> tuple[list[GroupCredit], Metrics]:
        """See `CreditScheme.assign`."""
        return [GroupCredit(self._rollouts(group)) for group in groups], {}

    def _rollouts(self, group: Group) -> tuple[RolloutCredit, ...]:
        advantages = self._advantages(group.rewards)
        return tuple(map(self._credit, group.rollouts, advantages.tolist()))

    def _advantages(self, rewards: Sequence[float]) -> npt.NDArray[np.float64]:
        return group_advantage(rewards)

    def _credit(self, rollout: Rollout, advantage: float) -> RolloutCredit:
        pieces = self.tokens.pieces(rollout.completion.token_ids)
        paragraphs = split_paragraphs(pieces, self.max_paragraph_len)
        texts = paragraph_texts(rollout, paragraphs, self.tokens)
        return RolloutCredit(
            advantages=np.full(len(rollout), advantage, dtype=np.float32),
            group_advantage=advantage,
            paragraphs=tuple(ParagraphCredit(*span, text) for span, text in zip(paragraphs.spans, texts, strict=True)),
        )
