"""Shaping by a Monte-Carlo value of each prefix: the expensive gold standard.

The potential is the success rate of K continuations that the current policy samples from the prefix, in [0, 1], as
in VinePPO (CPAS, "Sampling-based prefix value"). Here it takes the place of the contrastive potential and nothing
else changes: it is added to the group advantage by the same formula, in groups with right and wrong rollouts only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepcredit.credit.paragraphs import Paragraphs
from stepcredit.credit.potential_shaping import Measured, MeasuredGroup, PotentialShaping
from stepcredit.credit.token_text import TokenText
from stepcredit.rollouts import Group
from stepcredit.sampling.continuations import Continuations, Prefix
from stepcredit.scoring.scorer import ScoringCost
from stepcredit.settings.arm import ShapingSettings


class PrefixValue(PotentialShaping):
    """Shaping by sampled success rates.

    Its cost counts a continuation as a scoring, and the tokens it sampled as tokens computed.

    Args:
        continuations: samples and grades; its number of samples is K.
        tokens: the tokenizer of the rollouts.
        settings: see `ShapingSettings`; those of the answer bank do not apply.
    """

    def __init__(self, continuations: Continuations, tokens: TokenText, settings: ShapingSettings) -> None:
        super().__init__(tokens, settings)
        self.continuations = continuations

    def measure(
        self, groups: Sequence[Group], splits: Sequence[Sequence[Paragraphs]]
    ) -> tuple[list[MeasuredGroup], ScoringCost]:
        """See `PotentialShaping.measure`; a prefix that several rollouts share is continued once."""
        asked = [
            [
                [
                    Prefix(group.puzzle, rollout.prompt_ids, rollout.completion.token_ids[:length])
                    for length in paragraphs.prefixes
                ]
                if group.is_mixed and self.is_shaped(rollout, paragraphs)
                else []
                for rollout, paragraphs in zip(group.rollouts, split, strict=True)
            ]
            for group, split in zip(groups, splits, strict=True)
        ]
        every = [prefix for row in asked for prefixes in row for prefix in prefixes]
        unique = list(dict.fromkeys(every))
        outcomes = dict(zip(unique, self.continuations.sample(unique), strict=True))
        samples = self.continuations.samples
        cost = ScoringCost(
            scorings=len(every) * samples,
            scorings_unique=len(unique) * samples,
            tokens_computed=sum(outcome.tokens for outcome in outcomes.values()),
        )
        found = [
            MeasuredGroup(
                [
                    Measured(np.array([outcomes[prefix].successes / samples for prefix in prefixes]))
                    if prefixes
                    else None
                    for prefixes in row
                ]
            )
            for row in asked
        ]
        return found, cost
