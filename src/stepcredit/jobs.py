"""What each job receives: the part of the configuration that its stage reads, and nothing else."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from stepcredit.config import (
    ArmSettings,
    Config,
    ModelSettings,
    Positive,
    Rate,
    RLSettings,
    SamplerSettings,
    ScoringSettings,
    Section,
    SFTSettings,
    ShapingSettings,
)


class SFTJob(Section):
    """Everything that SFT reads."""

    model: ModelSettings
    sft: SFTSettings
    largest_number: Positive
    """Largest number of our own tokenizer, where the model starts from random weights."""


class RLJob(Section):
    """Everything that one RL run reads."""

    arm: ArmSettings
    rl: RLSettings
    sampler: SamplerSettings
    steps: Annotated[list[Positive], Field(min_length=1)]
    """Steps whose model is kept; the last one ends the run."""


class ScoringJob(Section):
    """Everything that the scoring study reads."""

    scoring: ScoringSettings
    sampler: SamplerSettings
    rl: RLSettings
    shaping: ShapingSettings
    seed: int
    """Of the run whose rollouts are scored; its first steps are repeated with each scorer."""


class EvaluationJob(Section):
    """Everything that the evaluation of one checkpoint reads."""

    samples: Positive
    temperature: Rate
    max_new_tokens: Positive
    max_concurrent: Positive
    seed: int
    sampler: SamplerSettings


def sft_job(config: Config) -> SFTJob:
    return SFTJob(model=config.model, sft=config.sft, largest_number=config.data.synthetic.largest_intermediate)


def rl_job(config: Config, arm: str) -> RLJob:
    """An arm of the report: every step of the evaluation but 0, which is the SFT checkpoint."""
    steps = [step for step in config.evaluation.steps if step > 0]
    return RLJob(arm=config.arms[arm], rl=config.rl, sampler=config.sampler, steps=steps)


def sweep_job(config: Config) -> RLJob:
    return RLJob(arm=config.arms[config.baseline], rl=config.rl, sampler=config.sampler, steps=[config.sweep.steps])


def scoring_job(config: Config) -> ScoringJob:
    """Paragraphs as the first shaped arm cuts them."""
    shaping = next((arm.shaping for arm in config.arms.values() if arm.shaping), ShapingSettings())
    return ScoringJob(
        scoring=config.scoring, sampler=config.sampler, rl=config.rl, shaping=shaping, seed=config.seeds[0]
    )


def evaluation_job(config: Config) -> EvaluationJob:
    """Of held-out puzzles."""
    return _evaluation_job(config, config.evaluation.samples)


def validation_job(config: Config) -> EvaluationJob:
    """Of validation puzzles, for the sweep."""
    return _evaluation_job(config, config.sweep.samples)


def _evaluation_job(config: Config, samples: int) -> EvaluationJob:
    shared = ("temperature", "max_new_tokens", "max_concurrent", "seed")
    values = {name: getattr(config.evaluation, name) for name in shared}
    return EvaluationJob(samples=samples, sampler=config.sampler, **values)
