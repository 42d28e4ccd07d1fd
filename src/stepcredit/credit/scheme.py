"""The credit protocol: graded groups in, one advantage per token out, with what explains it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from stepcredit.credit.answer_bank import AnswerBank
from stepcredit.credit.paragraphs import Paragraphs
from stepcredit.credit.token_text import TokenText
from stepcredit.rollouts import Group, Rollout
from stepcredit.scoring.scorer import LogLikelihoods

Advantages = npt.NDArray[np.float32]
Metrics = dict[str, float | None]


@dataclass(frozen=True)
class ParagraphCredit:
    """A paragraph and the credit it received.

    Attributes:
        start, end: tokens of the completion.
        text: decoded.
        potential_before, potential_after: clipped potential at its two boundaries, in nats; None if not
            scored.
        shaping: what was added to the advantage of each of its tokens; 0 if not scored.
    """

    start: int
    end: int
    text: str
    potential_before: float | None = None
    potential_after: float | None = None
    shaping: float = 0.0

    @property
    def tokens(self) -> int:
        return self.end - self.start


@dataclass(frozen=True)
class RolloutCredit:
    """The credit of one rollout.

    Attributes:
        advantages: [completion tokens] float32: group advantage plus shaping.
        group_advantage: the part that all tokens share.
        paragraphs: of the reasoning, in order.
        likelihoods: [paragraphs + 1, answers of the bank] in nats; None where none were scored.
    """

    advantages: Advantages
    group_advantage: float
    paragraphs: tuple[ParagraphCredit, ...]
    likelihoods: LogLikelihoods | None = None

    @property
    def potential(self) -> list[float]:
        """At each boundary, from the empty prefix on; empty if the rollout was not shaped."""
        after = [p.potential_after for p in self.paragraphs if p.potential_after is not None]
        first = [p.potential_before for p in self.paragraphs[:1] if p.potential_before is not None]
        return first + after


@dataclass(frozen=True)
class GroupCredit:
    """The credit of a group's rollouts, in their order; `bank` is None where the group was not shaped."""

    rollouts: tuple[RolloutCredit, ...]
    bank: AnswerBank | None = None


class CreditScheme(Protocol):
    """Says how much each token of each rollout is to be reinforced."""

    def assign(self, groups: Sequence[Group]) -> tuple[list[GroupCredit], Metrics]:
        """The credit of each group, in order, and the scheme's own metrics of the step, if it has any."""
        ...


def paragraph_texts(rollout: Rollout, paragraphs: Paragraphs, tokens: TokenText) -> list[str]:
    """The decoded text of each paragraph of a rollout."""
    return [tokens.decode(rollout.completion.token_ids[start:end]) for start, end in paragraphs.spans]
