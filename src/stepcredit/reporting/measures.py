"""Metrics of held-out evaluations: each a mean, or a ratio of two means, over (seeds, puzzles)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stepcredit.evaluation.statistics import (
    Bootstrap,
    Floats,
    Interval,
    mean_interval,
    paired_difference,
    paired_ratio_difference,
    ratio_interval,
)
from stepcredit.reporting.raw import Evaluation


@dataclass(frozen=True)
class Measure:
    """One metric of an arm at a step, before it is summarised.

    Attributes:
        numerator: (seeds, puzzles).
        denominator: the same shape for a ratio, None for a plain mean.
    """

    numerator: Floats
    denominator: Floats | None = None

    def first_seeds(self, count: int) -> Measure:
        """The same of the first `count` seeds."""
        denominator = None if self.denominator is None else self.denominator[:count]
        return Measure(self.numerator[:count], denominator)

    def interval(self, bootstrap: Bootstrap) -> Interval:
        if self.denominator is None:
            return mean_interval(self.numerator, bootstrap)
        return ratio_interval(self.numerator, self.denominator, bootstrap)

    def minus(self, other: Measure, bootstrap: Bootstrap) -> Interval:
        """The paired difference to the same metric elsewhere, over the seeds that both have (the first ones)."""
        seeds = min(len(self.numerator), len(other.numerator))
        if len(self.numerator) != len(other.numerator):
            return self.first_seeds(seeds).minus(other.first_seeds(seeds), bootstrap)
        if self.denominator is None or other.denominator is None:
            return paired_difference(self.numerator, other.numerator, bootstrap)
        return paired_ratio_difference(
            (self.numerator, self.denominator), (other.numerator, other.denominator), bootstrap
        )


def measures(evaluations: Sequence[Evaluation], pass_k: Sequence[int]) -> dict[str, Measure]:
    """The metrics of an arm's seeds at one step, by name, as fractions (length: tokens)."""

    def mean(values: list[Floats]) -> Measure:
        return Measure(np.stack(values))

    ks = sorted({1, *pass_k})
    named = {f"pass@{k}": mean([evaluation.pass_at(k) for evaluation in evaluations]) for k in ks}
    return named | {
        "well_formed": mean([evaluation.well_formed.mean(axis=1) for evaluation in evaluations]),
        "finished": mean([evaluation.finished.mean(axis=1) for evaluation in evaluations]),
        "accuracy_of_finished": Measure(
            np.stack([(evaluation.correct * evaluation.finished).mean(axis=1) for evaluation in evaluations]),
            np.stack([evaluation.finished.mean(axis=1) for evaluation in evaluations]),
        ),
        "length": mean([evaluation.tokens.mean(axis=1) for evaluation in evaluations]),
        "mixed_groups": mean([evaluation.mixed() for evaluation in evaluations]),
    }
