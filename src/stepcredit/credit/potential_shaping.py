"""Shaping by a potential, whatever the potential is: what is common to the schemes that add it to the group advantage.

Source: CPAS, "Answer bank" and the list of steps at its end. As in the write-up, every rollout that has a potential
is shaped: the malformed and the truncated too, which have paragraphs although they submit nothing. The tail of a
rollout, from `</reasoning>` on, keeps the group advantage, as does a rollout without a potential. The keys of
`ShapingSettings` beyond the write-up's change one of these things each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stepcredit.credit.answer_bank import AnswerBank
from stepcredit.credit.group_advantage import group_advantage
from stepcredit.credit.paragraphs import Paragraphs, split_paragraphs
from stepcredit.credit.scheme import GroupCredit, Metrics, ParagraphCredit, RolloutCredit, paragraph_texts
from stepcredit.credit.token_text import TokenText
from stepcredit.rollouts import Group, Rollout
from stepcredit.scoring.scorer import LogLikelihoods, ScoringCost
from stepcredit.settings.arm import ShapingSettings

Floats = npt.NDArray[np.float64]


def shaping(potential: npt.ArrayLike, beta: float = 0.1, gamma: float = 0.99) -> Floats:
    """A_shape_n = beta (gamma Phi_n - Phi_{n-1}), of each paragraph n: [paragraphs].

    Added to the advantage of every token of the paragraph, not divided by its length. Source: CPAS, "Answer
    bank".

    Args:
        potential: [paragraphs + 1], clipped, from the empty prefix on.
    """
    phi = np.asarray(potential, dtype=np.float64)
    return beta * (gamma * phi[1:] - phi[:-1])


@dataclass(frozen=True)
class Measured:
    """The potential along a rollout.

    Attributes:
        potential: [paragraphs + 1], from the empty prefix on.
        likelihoods: [paragraphs + 1, answers of the bank] in nats, of a potential that is made of them.
    """

    potential: Floats
    likelihoods: LogLikelihoods | None = None


@dataclass(frozen=True)
class MeasuredGroup:
    """Of each rollout of a group its potential, None for one that is not shaped; and the bank, if there is one."""

    rollouts: Sequence[Measured | None]
    bank: AnswerBank | None = None


class PotentialShaping(ABC):
    """Group advantage plus the shaping of each paragraph; implements `CreditScheme`.

    Args:
        tokens: the tokenizer of the rollouts.
        settings: see `ShapingSettings`.
    """

    def __init__(self, tokens: TokenText, settings: ShapingSettings) -> None:
        self.tokens = tokens
        self.settings = settings

    @abstractmethod
    def measure(
        self, groups: Sequence[Group], splits: Sequence[Sequence[Paragraphs]]
    ) -> tuple[list[MeasuredGroup], ScoringCost]:
        """The potentials of all groups in one batch, and what they cost; `splits` are each rollout's paragraphs."""

    def assign(self, groups: Sequence[Group]) -> tuple[list[GroupCredit], Metrics]:
        """See `CreditScheme.assign`."""
        splits = [[self.split(rollout) for rollout in group.rollouts] for group in groups]
        measured, cost = self.measure(groups, splits)
        credits = [
            GroupCredit(
                tuple(
                    map(self._credit, group.rollouts, split, group_advantage(group.rewards).tolist(), found.rollouts)
                ),
                found.bank,
            )
            for group, split, found in zip(groups, splits, measured, strict=True)
        ]
        return credits, shaping_metrics(credits, cost, self.settings.clip)

    def is_shaped(self, rollout: Rollout, paragraphs: Paragraphs) -> bool:
        """Whether a rollout is one that may be shaped, its group's answers aside."""
        return bool(paragraphs.spans) and (rollout.verdict.well_formed or not self.settings.well_formed_only)

    def split(self, rollout: Rollout) -> Paragraphs:
        """The paragraphs that are credited."""
        pieces = self.tokens.pieces(rollout.completion.token_ids)
        return split_paragraphs(pieces, self.settings.max_paragraph_len, self.settings.unit)

    def _credit(
        self, rollout: Rollout, paragraphs: Paragraphs, advantage: float, measured: Measured | None
    ) -> RolloutCredit:
        texts = paragraph_texts(rollout, paragraphs, self.tokens)
        advantages = np.full(len(rollout), advantage)
        if measured is None:
            plain = tuple(ParagraphCredit(*span, text) for span, text in zip(paragraphs.spans, texts, strict=True))
            return RolloutCredit(advantages.astype(np.float32), advantage, plain)
        potential = measured.potential
        added = shaping(potential, self.settings.beta, self.settings.gamma)
        if self.settings.first_paragraph == "unshaped":
            added[0] = 0.0
        values = zip(potential[:-1].tolist(), potential[1:].tolist(), added.tolist(), strict=True)
        credited = tuple(
            ParagraphCredit(*span, text, *value)
            for span, text, value in zip(paragraphs.spans, texts, values, strict=True)
        )
        for paragraph in credited:
            advantages[paragraph.start : paragraph.end] += paragraph.shaping
        if self.settings.closing_tag:
            advantages[slice(*paragraphs.closing)] += credited[-1].shaping
        return RolloutCredit(advantages.astype(np.float32), advantage, credited, measured.likelihoods)


def shaping_metrics(groups: Sequence[GroupCredit], cost: ScoringCost, clip: float) -> Metrics:
    """Metrics of a step; those of potential and shaping are None where no rollout was shaped.

    shaped_rollouts: share of all rollouts.
    shaping_mean, shaping_abs: of A_shape and of its absolute value, over shaped paragraphs.
    potential_first, potential_last: mean at the first and at the last boundary, over shaped rollouts.
    potential_clipped: share of boundaries at the clip.
    scorings, scorings_unique, tokens_scored: from `ScoringCost`, the last as the tokens computed.
    """
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    potentials = [potential for rollout in rollouts if (potential := rollout.potential)]
    shapings = [p.shaping for rollout in rollouts if rollout.potential for p in rollout.paragraphs]
    return {
        "shaped_rollouts": len(potentials) / len(rollouts),
        "shaping_mean": _mean(shapings),
        "shaping_abs": _mean([abs(value) for value in shapings]),
        "potential_first": _mean([potential[0] for potential in potentials]),
        "potential_last": _mean([potential[-1] for potential in potentials]),
        "potential_clipped": _mean([float(abs(phi) >= clip) for potential in potentials for phi in potential]),
        "scorings": cost.scorings,
        "scorings_unique": cost.scorings_unique,
        "tokens_scored": cost.tokens_computed,
    }


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None
