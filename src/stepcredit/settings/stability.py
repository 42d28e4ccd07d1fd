"""The mismatch experiment: samplers made wrong on purpose, and what trains under them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from stepcredit.settings.evaluation import EvaluationJob
from stepcredit.settings.losses import (
    LossSettings,
    ReinforceSettings,
    ScoreCenteringSettings,
    TISScoreCenteringSettings,
    TISSettings,
)
from stepcredit.settings.mismatch import EXACT, MismatchSettings
from stepcredit.settings.rl import RLJob, RLSettings
from stepcredit.settings.sampler import SamplerSettings
from stepcredit.settings.section import Positive, Rate, Section

Rewards = Literal["group_centred", "raw"]
"""`group_centred`: reward minus the mean of the group; `raw`: the reward itself, +1 or 0."""


class StabilitySettings(Section):
    """Methods x mismatches x rewards x seeds, and the reference: the first method under an exact sampler."""

    methods: Annotated[list[LossSettings], Field(min_length=1)] = [
        ReinforceSettings(),
        TISSettings(),
        ScoreCenteringSettings(),
        TISScoreCenteringSettings(),
    ]
    mismatches: Annotated[list[MismatchSettings], Field(min_length=1)] = [
        MismatchSettings(name="int4", label="INT4 with embedding", weights="int4", embedding=True),
        MismatchSettings(name="stale", label="stale, 6 steps", refresh_every=6),
    ]
    rewards: Annotated[list[Rewards], Field(min_length=1)] = ["raw"]
    seeds: Annotated[list[int], Field(min_length=1)] = [0]
    steps: Positive = 12
    learning_rate: Rate | None = None
    """null: the one that the sweep chose."""
    puzzles: Positive = 128
    """Validation puzzles that the final accuracy is measured on, by an exact sampler."""
    samples: Positive = 2
    head_sizes: Annotated[list[Positive], Field(min_length=1)] = [1, 2, 4, 8, 16, 32, 64]
    """Top-k sizes whose drift is measured beside that of the whole vocabulary."""
    drift_rollouts: Positive = 16
    """Rollouts of the SFT model on whose positions the drift of each method is measured."""
    cost_repeats: Annotated[int, Field(ge=2)] = 5

    @model_validator(mode="after")
    def _names_differ(self) -> StabilitySettings:
        names = [mismatch.name for mismatch in self.mismatches]
        for what, found in (
            ("methods", [method.name for method in self.methods]),
            ("mismatches", [*names, EXACT]),
            ("rewards", self.rewards),
            ("seeds", self.seeds),
        ):
            if len(set(found)) != len(found):
                raise ValueError(f"{what} must differ from each other: {', '.join(map(str, found))}")
        return self


class StabilityJob(Section):
    """Everything that one run under a wrong sampler reads, and the measurements around the runs."""

    rl: RLJob
    evaluation: EvaluationJob
    """Of the final weights, by an exact sampler."""
    puzzles: Positive
    """Validation puzzles that are evaluated."""


class DriftJob(Section):
    """Everything that the measurement of drift on the SFT model reads."""

    rl: RLSettings
    sampler: SamplerSettings
    mismatches: list[MismatchSettings]
    head_sizes: list[Positive]
    rollouts: Positive
    evaluation: EvaluationJob
    """Of the SFT model: where every run starts."""
    puzzles: Positive


class MismatchCostJob(Section):
    """Everything that the measurement of what score centering costs reads."""

    rl: RLSettings
    sampler: SamplerSettings
    repeats: Positive
