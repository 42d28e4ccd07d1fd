"""The potential against what follows."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from stepcredit.settings.arm import ShapingSettings
from stepcredit.settings.sampler import SamplerSettings
from stepcredit.settings.section import Name, Positive, Rate, Section


class SignalSettings(Section):
    """Does the potential mean anything? At boundaries of held-out rollouts it is set against sampled success rates."""

    arms: list[Name] = ["baseline"]
    """Arms whose last checkpoint (first seed) is looked at, beside the SFT checkpoint."""
    puzzles: Positive = 64
    rollouts: Annotated[int, Field(ge=2)] = 8
    """Of each puzzle: the group whose answers are the bank."""
    boundaries: Positive = 200
    """How many boundaries are drawn, of groups with right and wrong answers."""
    continuations: Positive = 20
    temperature: Rate = 1.0
    max_concurrent: Positive = 512
    shaping: ShapingSettings = ShapingSettings()
    """What the potential is computed with."""
    seed: int = 0


class SignalJob(Section):
    """Everything that the look at the potential of one checkpoint reads."""

    signal: SignalSettings
    """Without the list of arms."""
    max_new_tokens: Positive
    sampler: SamplerSettings
