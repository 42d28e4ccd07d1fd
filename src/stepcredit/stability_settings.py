"""The mismatch experiment as the configuration knows it: samplers made wrong on purpose, and what trains under them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from stepcredit.loss_settings import (
    LossSettings,
    ReinforceSettings,
    ScoreCenteringSettings,
    TISScoreCenteringSettings,
    TISSettings,
)
from stepcredit.section import Name, Positive, Rate, Section

KVCacheType = Literal["auto", "fp8_e4m3", "fp8_e5m2"]
"""Types of the KV cache that vLLM stores as they say; several others start on a CPU and return garbage."""

Rewards = Literal["group_centred", "raw"]
"""`group_centred`: reward minus the mean of the group; `raw`: the reward itself, +1 or 0."""

EXACT = "exact"
"""Name of the sampler that is not wrong: the reference run."""


class MismatchSettings(Section):
    """How the sampler departs from the trainer; the parts combine. Without any, the sampler is the trainer."""

    name: Name
    label: str
    weights: Literal["int8", "int4"] | None = None
    """Projections rounded at each push, symmetric, one scale an output channel."""
    embedding: bool = False
    """Whether the (tied) embedding is rounded too."""
    noise: Annotated[float, Field(ge=0)] = 0.0
    """Standard deviation of Gaussian noise on each matrix, in units of the spread of its weights; anew at each push."""
    refresh_every: Positive = 1
    """Steps between two pushes: above 1 the sampler is stale."""
    kv_cache: KVCacheType = "auto"

    @model_validator(mode="after")
    def _embedding_is_rounded_with_something(self) -> MismatchSettings:
        if self.embedding and self.weights is None:
            raise ValueError("embedding: true rounds nothing without weights: int8 or int4")
        return self

    @property
    def changes_weights(self) -> bool:
        return self.weights is not None or self.noise > 0

    @property
    def distorts(self) -> bool:
        """Whether the sampler is wrong right after a push, and not only later."""
        return self.changes_weights or self.kv_cache != "auto"


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
