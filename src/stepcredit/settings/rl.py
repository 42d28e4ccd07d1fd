"""The RL loop and the learning-rate sweep."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from stepcredit.settings.arm import ArmSettings
from stepcredit.settings.losses import DPPOSettings, LossSettings
from stepcredit.settings.mismatch import MismatchSettings
from stepcredit.settings.model import OptimizerSettings
from stepcredit.settings.sampler import SamplerSettings
from stepcredit.settings.section import Positive, Rate, Section


class RLSettings(Section):
    """The RL loop, common to all arms."""

    prompts_per_step: Positive = 16
    rollouts_per_prompt: Annotated[int, Field(ge=2)] = 8
    temperature: Rate = 1.0
    max_new_tokens: Positive = 448
    warmup_steps: Annotated[int, Field(ge=0)] = 5
    loss: LossSettings = DPPOSettings()
    head_size: Positive = 32
    """Top-k of the sampler at each position, for a loss that centers with it."""
    draws: Positive = 8
    """Further tokens drawn at each position, for a loss that centers with them."""
    drift_positions: Annotated[int, Field(ge=0)] = 0
    """Positions of each micro-batch at which the drift of the loss is measured (needs the top-k); 0: none."""
    filter_zero_advantages: bool = True
    optimizer: OptimizerSettings = OptimizerSettings()
    tokens_per_microbatch: Positive = 4096
    gradient_checkpointing: bool = False
    checkpoint_every: Positive = 10
    """A state to resume from is saved every so many steps."""
    keep_rollouts_every: Positive = 10
    """Rollouts with their credit are kept for the report at step 1 and every so many steps."""
    device: Literal["cpu", "cuda"] = "cpu"


class SweepSettings(Section):
    """The learning-rate sweep: baseline arm, one seed, judged on the validation puzzles."""

    learning_rates: Annotated[list[Rate], Field(min_length=1)] = [2e-5, 5e-5, 1.5e-4, 5e-4]
    steps: Positive = 20
    seed: int = 100
    samples: Positive = 4


class RLJob(Section):
    """Everything that one RL run reads."""

    arm: ArmSettings
    rl: RLSettings
    sampler: SamplerSettings
    steps: Annotated[list[Positive], Field(min_length=1)]
    """Steps whose model is kept; the last one ends the run."""
    mismatch: MismatchSettings | None = None
    """How the sampler is wrong on purpose; null: it is not."""
