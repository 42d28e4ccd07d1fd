"""Contrastive potential advantage shaping: the potential's formulas, and the credit scheme made of them.

Source: CPAS, "Answer bank"; SPEC section 4. A group whose bank is homogeneous keeps the plain group advantage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from stepcredit.countdown.prompt import SOLUTION_CLOSE, SOLUTION_OPEN, SOLUTION_TEMPLATE
from stepcredit.credit.answer_bank import AnswerBank, answer_bank, answer_key
from stepcredit.credit.paragraphs import Paragraphs
from stepcredit.credit.potential_shaping import Floats, Measured, MeasuredGroup, PotentialShaping
from stepcredit.credit.token_text import TokenText
from stepcredit.rollouts import Group, Rollout
from stepcredit.scoring.scorer import LogLikelihoods, Scorer, ScoringCost, ScoringRequest
from stepcredit.settings.arm import ShapingSettings


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


@dataclass(frozen=True)
class _Asked:
    """A rollout whose bank is to be scored, and how often each answer counts in its mean."""

    rollout: Rollout
    paragraphs: Paragraphs
    bank: AnswerBank
    counts: tuple[list[int], list[int]]


class ContrastivePotential(PotentialShaping):
    """Shaping by the contrastive potential.

    Args:
        scorer: scores the answers of the bank at each boundary.
        tokens: the tokenizer, of rollouts and scorer alike.
        settings: see `ShapingSettings`.
    """

    def __init__(self, scorer: Scorer, tokens: TokenText, settings: ShapingSettings) -> None:
        super().__init__(tokens, settings)
        self.scorer = scorer

    @cached_property
    def _closing(self) -> tuple[int, ...]:
        return tuple(self.tokens.encode(SOLUTION_CLOSE))

    def bank(self, group: Group) -> AnswerBank | None:
        """The answers that a group is scored with; None for one that is not shaped."""
        return answer_bank(group, self.tokens, self.settings.reference_answer)

    def potential(self, scores: LogLikelihoods, counts: tuple[Sequence[int], Sequence[int]]) -> Floats:
        """From log-likelihoods [boundaries, answers of the bank] and how often each counts: [boundaries]."""
        correct, incorrect = np.split(scores, [len(counts[0])], axis=1)
        return contrastive_potential(
            np.repeat(correct, counts[0], axis=1),
            np.repeat(incorrect, counts[1], axis=1),
            self.settings.temperature,
            self.settings.clip,
        )

    def has_potential(self, counts: tuple[Sequence[int], Sequence[int]]) -> bool:
        """Whether both sides are left."""
        return all(map(sum, counts))

    def measure(
        self, groups: Sequence[Group], splits: Sequence[Sequence[Paragraphs]]
    ) -> tuple[list[MeasuredGroup], ScoringCost]:
        """See `PotentialShaping.measure`; scores all groups in one batch."""
        banks = [self.bank(group) for group in groups]
        asked = [
            [self._asked(rollout, paragraphs, bank) for rollout, paragraphs in zip(group.rollouts, split, strict=True)]
            for group, bank, split in zip(groups, banks, splits, strict=True)
        ]
        requests = [request for row in asked for item in row if item for request in self._requests(item)]
        scores, cost = self.scorer.score(requests) if requests else ([], ScoringCost())
        remaining = iter(scores)
        found: list[MeasuredGroup] = []
        for bank, row in zip(banks, asked, strict=True):
            rollouts: list[Measured | None] = []
            for item in row:
                if item is None:
                    rollouts.append(None)
                    continue
                likelihoods = np.concatenate([next(remaining) for _ in self._requests(item)])
                potential = self.potential(self._normalised(likelihoods, item.bank), item.counts)
                rollouts.append(Measured(potential, likelihoods))
            found.append(MeasuredGroup(rollouts, bank))
        return found, cost

    def _asked(self, rollout: Rollout, paragraphs: Paragraphs, bank: AnswerBank | None) -> _Asked | None:
        if bank is None or not self.is_shaped(rollout, paragraphs):
            return None
        own = answer_key(rollout, self.tokens) if self.settings.leave_own_out else None
        counts = bank.counts(without=own)
        return _Asked(rollout, paragraphs, bank, counts) if self.has_potential(counts) else None

    def _requests(self, item: _Asked) -> list[ScoringRequest]:
        """One request for a rollout, or two where its first boundary is the prompt alone."""
        rollout, prefixes = item.rollout, item.paragraphs.prefixes
        answers = tuple(answer.token_ids + self._closing for answer in item.bank.answers)
        start = len(rollout.prompt_ids)
        alone = self.settings.first_paragraph == "prompt"
        whole = ScoringRequest(
            trunk=rollout.prompt_ids + rollout.completion.token_ids[: prefixes[-1]],
            boundaries=tuple(start + length for length in prefixes[alone:]),
            template=self._template,
            answers=answers,
        )
        return [ScoringRequest(rollout.prompt_ids, (start,), self._opening, answers), whole] if alone else [whole]

    @cached_property
    def _template(self) -> tuple[int, ...]:
        return tuple(self.tokens.encode(SOLUTION_TEMPLATE))

    @cached_property
    def _opening(self) -> tuple[int, ...]:
        return tuple(self.tokens.encode(SOLUTION_OPEN))

    def _normalised(self, likelihoods: LogLikelihoods, bank: AnswerBank) -> LogLikelihoods:
        if not self.settings.length_normalised:
            return likelihoods
        lengths = [len(answer.token_ids) + len(self._closing) for answer in bank.answers]
        normalised: LogLikelihoods = likelihoods / np.array(lengths, dtype=np.float64)
        return normalised
