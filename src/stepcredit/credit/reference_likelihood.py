"""Shaping by the likelihood of one reference answer: the contrast to the contrastive potential.

The potential is l(a* | x, s_1:n), the log-likelihood of a correct answer that comes with the puzzle, as in PACR and
TIPS (CPAS, "Likelihood as potential" and "How to measure distance?"). It needs no answers of the group, so
homogeneous groups are shaped too. With `length_normalised` it is the mean over the answer's tokens, as PACR has it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepcredit.countdown.reference import reference_answer
from stepcredit.credit.answer_bank import AnswerBank, BankedAnswer
from stepcredit.credit.contrastive_potential import ContrastivePotential
from stepcredit.credit.potential_shaping import Floats
from stepcredit.rollouts import Group
from stepcredit.scoring.scorer import LogLikelihoods


class ReferenceLikelihood(ContrastivePotential):
    """Shaping by the clipped log-likelihood of the reference answer."""

    def bank(self, group: Group) -> AnswerBank | None:
        """The reference answer alone; None for a puzzle without one."""
        text = reference_answer(group.puzzle)
        if text is None:
            return None
        return AnswerBank(correct=(BankedAnswer(tuple(self.tokens.encode(text)), text, True, 1),), incorrect=())

    def potential(self, scores: LogLikelihoods, counts: tuple[Sequence[int], Sequence[int]]) -> Floats:
        """l(a* | x, s_1:n), clipped to [-clip, 0]: [boundaries]."""
        return np.clip(scores[:, 0], -self.settings.clip, self.settings.clip)

    def has_potential(self, counts: tuple[Sequence[int], Sequence[int]]) -> bool:
        """Always: there is nothing to contrast the reference with."""
        return True
