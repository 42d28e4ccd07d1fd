"""Samplers made wrong on purpose."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from stepcredit.settings.sampler import KVCacheType
from stepcredit.settings.section import Name, Positive, Section

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
