"""The model, and the optimiser that trains it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from stepcredit.settings.section import Positive, Rate, Section, Share


class ModelSettings(Section):
    """A Qwen3 to initialise at random with our own tokenizer, or a pretrained directory."""

    pretrained: str | None = None
    parameters: Positive | None = None
    """Of the pretrained model, where known: jobs ask for memory by it."""
    hidden_size: Positive = 96
    layers: Positive = 3
    intermediate_size: Positive = 288
    attention_heads: Positive = 3
    key_value_heads: Positive = 1
    head_dim: Annotated[int, Field(ge=32, multiple_of=16)] = 32
    """vLLM on a CPU has no attention kernel below 32."""
    max_positions: Positive = 512

    @model_validator(mode="after")
    def _heads_divide(self) -> ModelSettings:
        if self.attention_heads % self.key_value_heads:
            raise ValueError("attention_heads must be a multiple of key_value_heads")
        return self


class OptimizerSettings(Section):
    """AdamW with gradient clipping."""

    beta1: Share = 0.9
    beta2: Share = 0.95
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    max_grad_norm: Rate = 1.0
