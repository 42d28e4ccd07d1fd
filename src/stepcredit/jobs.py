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
    Section,
    SFTSettings,
    SignalSettings,
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


class EvaluationJob(Section):
    """Everything that the evaluation of one checkpoint reads."""

    samples: Positive
    temperature: Rate
    max_new_tokens: Positive
    max_concurrent: Positive
    seed: int
    sampler: SamplerSettings


class SignalJob(Section):
    """Everything that the look at the potential of one checkpoint reads."""

    signal: SignalSettings
    """Without the list of arms."""
    max_new_tokens: Positive
    sampler: SamplerSettings


def sft_job(config: Config) -> SFTJob:
    return SFTJob(model=config.model, sft=config.sft, largest_number=config.data.synthetic.largest_intermediate)


def rl_job(config: Config, arm: str) -> RLJob:
    """An arm of the report. A job does not see how many seeds the arm has, or what question it answers."""
    settings = config.arms[arm].model_copy(update={"seeds": None, "steps": None, "question": None})
    return RLJob(arm=settings, rl=config.rl, sampler=config.sampler, steps=config.trained_steps)


def sweep_job(config: Config) -> RLJob:
    return RLJob(arm=config.arms[config.baseline], rl=config.rl, sampler=config.sampler, steps=[config.sweep.steps])


def evaluation_job(config: Config) -> EvaluationJob:
    """Of held-out puzzles."""
    return _evaluation_job(config, config.evaluation.samples)


def validation_job(config: Config) -> EvaluationJob:
    """Of validation puzzles, for the sweep."""
    return _evaluation_job(config, config.sweep.samples)


def signal_job(config: Config) -> SignalJob:
    settings = config.signal.model_copy(update={"arms": []})
    return SignalJob(signal=settings, max_new_tokens=config.rl.max_new_tokens, sampler=config.sampler)


def _evaluation_job(config: Config, samples: int) -> EvaluationJob:
    shared = ("temperature", "max_new_tokens", "max_concurrent", "seed")
    values = {name: getattr(config.evaluation, name) for name in shared}
    return EvaluationJob(samples=samples, sampler=config.sampler, **values)
