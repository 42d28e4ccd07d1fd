"""What each job receives: the part of the configuration that its stage reads, and nothing else."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from stepcredit.config import (
    ArmSettings,
    Config,
    ModelSettings,
    ParityAuditSettings,
    Positive,
    Rate,
    RLSettings,
    SamplerSettings,
    Section,
    SFTSettings,
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


def sft_job(config: Config) -> SFTJob:
    return SFTJob(model=config.model, sft=config.sft, largest_number=config.data.synthetic.largest_intermediate)


def rl_job(config: Config, arm: str) -> RLJob:
    """An arm of the report: every step of the evaluation but 0, which is the SFT checkpoint."""
    steps = [step for step in config.evaluation.steps if step > 0]
    return RLJob(arm=config.arms[arm], rl=config.rl, sampler=config.sampler, steps=steps)


def sweep_job(config: Config) -> RLJob:
    return RLJob(arm=config.arms[config.baseline], rl=config.rl, sampler=config.sampler, steps=[config.sweep.steps])


def parity_job(config: Config, model: str) -> ParityAuditSettings:
    """The audit of sampler against trainer on one of `parity.models`."""
    tokens = config.parity.random_tokens if model == "random" else config.parity.audit.tokens
    return config.parity.audit.model_copy(update={"tokens": tokens})


def random_model_job(config: Config) -> SFTJob:
    """Random weights in the shape that the audit asks for: what SFT would start from."""
    return sft_job(config).model_copy(update={"model": config.parity.random_model})


def ablation_job(config: Config, run: str) -> RLJob:
    """A short run of the baseline arm under one setting of the sampler; in all of them updates land in flight."""
    ablation = config.parity.ablation
    rl = {"temperature": ablation.temperature, "checkpoint_every": ablation.steps}  # its old weights are in no state
    changes = {**ablation.runs[run].model_dump(), "update_after": ablation.update_after}
    return RLJob(
        arm=config.arms[config.baseline],
        rl=config.rl.model_copy(update=rl),
        sampler=config.sampler.model_copy(update=changes),
        steps=[ablation.steps],
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
