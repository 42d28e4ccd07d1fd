"""The scoring study."""

from __future__ import annotations

from stepcredit.settings.arm import ShapingSettings
from stepcredit.settings.model import ModelSettings
from stepcredit.settings.rl import RLSettings
from stepcredit.settings.sampler import SamplerSettings
from stepcredit.settings.section import Positive, Rate, Section


class ScoringSettings(Section):
    """The scoring study: every scorer on the same recorded rollouts, and in the RL loop."""

    alone: bool = True
    """Whether nothing runs beside what is timed (on a machine with two cores)."""
    scorings: Positive = 300
    """Of the recorded workload, about: whole rollouts, the first of them always."""
    repetitions: Positive = 3
    enough_seconds: Rate = 10.0
    """A scorer that has taken this long on a workload is not repeated any more."""
    steps: Positive = 2
    """RL steps that are timed with each scorer."""
    prompts_per_step: Positive = 4
    large: ModelSettings = ModelSettings(
        hidden_size=576,
        layers=30,
        intermediate_size=1536,
        attention_heads=9,
        key_value_heads=3,
        head_dim=64,
        max_positions=2048,
    )
    """A larger shape with random weights; by default that of SmolLM2-135M."""
    large_vocabulary: Positive = 49_152
    large_trunk: Positive = 704
    """Tokens of its one trunk: recorded rollouts one after the other."""
    large_scorings: Positive = 80


class ScoringJob(Section):
    """Everything that the scoring study reads."""

    scoring: ScoringSettings
    sampler: SamplerSettings
    rl: RLSettings
    shaping: ShapingSettings
    seed: int
    """Of the run whose rollouts are scored; its first steps are repeated with each scorer."""
