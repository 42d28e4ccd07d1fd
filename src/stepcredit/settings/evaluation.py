"""Evaluation, and the statistics on it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from stepcredit.settings.sampler import SamplerSettings
from stepcredit.settings.section import Positive, Rate, Section


class EvaluationSettings(Section):
    """Held-out evaluation: `samples` rollouts a puzzle at every step of `steps` (0 is the SFT checkpoint)."""

    steps: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)] = [0, 20, 30, 40]
    samples: Positive = 4
    pass_k: list[Positive] = [1, 4]
    temperature: Rate = 0.8
    max_new_tokens: Positive = 448
    max_concurrent: Positive = 512
    seed: int = 0
    cap_shares: list[Annotated[float, Field(gt=0, le=1)]] = [0.25, 0.375, 0.5, 0.75, 1.0]
    """Smaller token caps, as shares of `max_new_tokens`, at which the same completions are judged again."""

    @model_validator(mode="after")
    def _steps_ordered(self) -> EvaluationSettings:
        if self.steps != sorted(set(self.steps)):
            raise ValueError("steps must be in increasing order, each once")
        if max(self.pass_k) > self.samples:
            raise ValueError(f"pass_k asks for pass@{max(self.pass_k)} of {self.samples} samples a puzzle")
        return self


class StatisticsSettings(Section):
    """Bootstrap over puzzles nested in seeds."""

    resamples: Positive = 2000
    confidence: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    seed: int = 0


class EvaluationJob(Section):
    """Everything that the evaluation of one checkpoint reads."""

    samples: Positive
    temperature: Rate
    max_new_tokens: Positive
    max_concurrent: Positive
    seed: int
    sampler: SamplerSettings
