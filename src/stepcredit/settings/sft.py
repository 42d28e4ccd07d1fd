"""Supervised fine-tuning."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from stepcredit.settings.model import ModelSettings, OptimizerSettings
from stepcredit.settings.section import Positive, Rate, Section


class SFTSettings(Section):
    """Supervised fine-tuning. Schedule: linear warm-up, constant, linear decay over the last `decay_steps`."""

    steps: Positive = 1200
    batch_size: Positive = 32
    learning_rate: Rate = 5e-3
    min_learning_rate: Annotated[float, Field(ge=0)] = 2.5e-4
    warmup_steps: Annotated[int, Field(ge=0)] = 60
    decay_steps: Annotated[int, Field(ge=0)] = 1140
    max_tokens: Positive = 512
    """Demonstrations longer than this are left out, and counted."""
    optimizer: OptimizerSettings = OptimizerSettings(beta2=0.98, weight_decay=0.1)
    tokens_per_microbatch: Positive | None = None
    """Tokens of a batch that are in memory at a time; null: all of them."""
    gradient_checkpointing: bool = False
    checkpoint_every: Positive = 250
    device: Literal["cpu", "cuda"] = "cpu"
    seed: int = 0

    @model_validator(mode="after")
    def _schedule_fits(self) -> SFTSettings:
        if self.warmup_steps + self.decay_steps > self.steps:
            raise ValueError("warmup_steps + decay_steps must not exceed steps")
        return self


class SFTJob(Section):
    """Everything that SFT reads."""

    model: ModelSettings
    sft: SFTSettings
    largest_number: Positive
    """Largest number of our own tokenizer, where the model starts from random weights."""
