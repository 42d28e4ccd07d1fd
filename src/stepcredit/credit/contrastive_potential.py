"""Contrastive potential advantage shaping: the formulas, and the credit scheme made of them.

Source: CPAS, "Answer bank" and the list of steps at its end; SPEC section 4. As in the write-up, every
rollout of a mixed group is shaped: the malformed and the truncated too, which have paragraphs although they
submit nothing. The tail of a rollout, from `</reasoning>` on, keeps the group advantage, as does a group
whose bank is homogeneous.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from stepcredit.config import ShapingSettings
from stepcredit.countdown.prompt import SOLUTION_CLOSE, SOLUTION_TEMPLATE
from stepcredit.credit.answer_bank import AnswerBank, answer_bank
from stepcredit.credit.group_advantage import group_advantage
from stepcredit.credit.paragraphs import Paragraphs, split_paragraphs
from stepcredit.credit.scheme import GroupCredit, Metrics, ParagraphCredit, RolloutCredit, paragraph_texts
from stepcredit.credit.token_text import TokenText
from stepcredit.rollouts import Group, Rollout
from stepcredit.scoring.scorer import LogLikelihoods, Scorer, ScoringCost, ScoringRequest

Floats = npt.NDArray[np.float64]


def log_mean_exp(z: npt.ArrayLike, temperature: float = 1.0) -> Floats:
    """LSE_tau(z) = tau log(mean(exp(z / tau))) over the last axis: [...].

    Between the maximum (tau -> 0) and the mean (tau -> infinity). Source: CPAS, "Answer bank".
    """
    scaled = np.asarray(z, dtype=np.float64) / temperature
    largest = scaled.max(axis=-1, keepdims=True)
    mean: Floats = np.exp(scaled - largest).mean(axis=-1)
    result: Floats = temperature * (np.log(mean) + largest[..., 0])
    return result


def contrastive_potential(
    correct: npt.ArrayLike, incorrect: npt.ArrayLike, temperature: float = 1.0, clip: float = 5.0
) -> Floats:
    """How much more likely the correct answers are than the incorrect ones, at each boundary: [boundaries].

    Phi_n = LSE_tau(l(a | x, s_1:n) for a in B+) - LSE_tau(... for a in B-), clipped to [-clip, clip], in
    nats. Source: CPAS, "Answer bank".

    Args:
        correct: [boundaries, correct] log-likelihoods of the correct answers given the prefix that ends at
            each boundary, an answer once for each rollout that submitted it.
        incorrect: [boundaries, incorrect], the same for the incorrect answers.

    Raises:
        ValueError: if either side of the answer bank is empty (a homogeneous group has no potential).
    """
    sides = np.asarray(correct, dtype=np.float64), np.asarray(incorrect, dtype=np.float64)
    if not all(side.shape[-1] for side in sides):
        raise ValueError("one side of the answer bank is empty: a homogeneous group has no potential")
    right, wrong = (log_mean_exp(side, temperature) for side in sides)
    return np.clip(right - wrong, -clip, clip)


def shaping(potential: npt.ArrayLike, beta: float = 0.1, gamma: float = 0.99) -> Floats:
    """A_shape_n = beta (gamma Phi_n - Phi_{n-1}), of each paragraph n: [paragraphs].

    Added to the advantage of every token of the paragraph, not divided by its length. Source: CPAS, "Answer
    bank".

    Args:
        potential: [paragraphs + 1], clipped, from the empty prefix on.
    """
    phi = np.asarray(potential, dtype=np.float64)
    return beta * (gamma * phi[1:] - phi[:-1])


class ContrastivePotential:
    """Group advantage plus the shaping of each paragraph; implements `CreditScheme`.

    Args:
        scorer: scores the answers of the bank at each boundary.
        tokens: the tokenizer, of rollouts and scorer alike.
        settings: beta, gamma, temperature, clip and the paragraph guard.
    """

    def __init__(self, scorer: Scorer, tokens: TokenText, settings: ShapingSettings) -> None:
        self.scorer = scorer
        self.tokens = tokens
        self.settings = settings

    @cached_property
    def _template(self) -> tuple[int, ...]:
        return tuple(self.tokens.encode(SOLUTION_TEMPLATE))

    @cached_property
    def _closing(self) -> tuple[int, ...]:
        return tuple(self.tokens.encode(SOLUTION_CLOSE))

    def assign(self, groups: Sequence[Group]) -> tuple[list[GroupCredit], Metrics]:
        """See `CreditScheme.assign`; scores all groups in one batch."""
        banks = [answer_bank(group, self.tokens) for group in groups]
        splits = [[self._split(rollout) for rollout in group.rollouts] for group in groups]
        requests = [
            self._request(rollout, paragraphs, bank)
            for group, bank, split in zip(groups, banks, splits, strict=True)
            if bank
            for rollout, paragraphs in zip(group.rollouts, split, strict=True)
            if paragraphs.spans
        ]
        scores, cost = self.scorer.score(requests) if requests else ([], ScoringCost())
        remaining = iter(scores)
        credits = []
        for group, bank, split in zip(groups, banks, splits, strict=True):
            rollouts = []
            for rollout, paragraphs, advantage in zip(
                group.rollouts, split, group_advantage(group.rewards).tolist(), strict=True
            ):
                potential = self._potential(next(remaining), bank) if bank and paragraphs.spans else None
                rollouts.append(self._credit(rollout, paragraphs, advantage, potential))
            credits.append(GroupCredit(tuple(rollouts), bank))
        return credits, shaping_metrics(credits, cost, self.settings.clip)

    def _split(self, rollout: Rollout) -> Paragraphs:
        pieces = self.tokens.pieces(rollout.completion.token_ids)
        return split_paragraphs(pieces, self.settings.max_paragraph_len)

    def _request(self, rollout: Rollout, paragraphs: Paragraphs, bank: AnswerBank) -> ScoringRequest:
        return ScoringRequest(
            trunk=rollout.prompt_ids + rollout.completion.token_ids[: paragraphs.prefixes[-1]],
            boundaries=tuple(len(rollout.prompt_ids) + length for length in paragraphs.prefixes),
            template=self._template,
            answers=tuple(answer.token_ids + self._closing for answer in bank.answers),
        )

    def _potential(self, scores: LogLikelihoods, bank: AnswerBank) -> Floats:
        """From [boundaries, answers of the bank], each scored once: [boundaries]."""
        correct, incorrect = np.split(scores, [len(bank.correct)], axis=1)
        return contrastive_potential(
            np.repeat(correct, [answer.count for answer in bank.correct], axis=1),
            np.repeat(incorrect, [answer.count for answer in bank.incorrect], axis=1),
            self.settings.temperature,
            self.settings.clip,
        )

    def _credit(
        self, rollout: Rollout, paragraphs: Paragraphs, advantage: float, potential: Floats | None
    ) -> RolloutCredit:
        texts = paragraph_texts(rollout, paragraphs, self.tokens)
        credited = [ParagraphCredit(*span, text) for span, text in zip(paragraphs.spans, texts, strict=True)]
        if potential is not None:
            added = shaping(potential, self.settings.beta, self.settings.gamma)
            values = zip(potential[:-1].tolist(), potential[1:].tolist(), added.tolist(), strict=True)
            credited = [
                ParagraphCredit(paragraph.start, paragraph.end, paragraph.text, *value)
                for paragraph, value in zip(credited, values, strict=True)
            ]
        advantages = np.full(len(rollout), advantage)
        for paragraph in credited:
            advantages[paragraph.start : paragraph.end] += paragraph.shaping
        return RolloutCredit(advantages.astype(np.float32), advantage, tuple(credited))


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
