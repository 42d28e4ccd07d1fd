"""Sampler against trainer."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from stepcredit.settings.model import ModelSettings
from stepcredit.settings.section import Name, Positive, Rate, Section


class ParityAuditSettings(Section):
    """The audit of sampler against trainer (`stepcredit parity`)."""

    settings: list[str] | None = None
    """Names of the settings to measure; null: all of them."""
    tokens: Positive = 4000
    """Sampled tokens a setting, about; slow ones take a third."""
    max_new_tokens: Positive = 128
    weight_change: Rate = 0.05
    """Size of the weight update that is pushed, as a share of each matrix's spread."""
    seed: int = 0


class AblationRunSettings(Section):
    """What one run of the parity ablation sets in `sampler`."""

    logprobs_mode: Literal["processed_logprobs", "raw_logprobs"] = "processed_logprobs"
    reset_cache: bool = True


class ParityAblationSettings(Section):
    """Short RL runs of the baseline arm under settings that the audit flags, against the right one."""

    runs: dict[Name, AblationRunSettings] = {
        "right": AblationRunSettings(),
        "raw": AblationRunSettings(logprobs_mode="raw_logprobs"),
        "stale": AblationRunSettings(reset_cache=False),
    }
    """The first run is the one that the others are compared with."""
    steps: Positive = 10
    temperature: Rate = 0.8
    update_after: Positive = 96
    """Tokens of a completion after which the weight update lands."""
    seed: int = 0


class ParitySettings(Section):
    """Sampler against trainer."""

    models: Annotated[list[Literal["sft", "rl", "random"]], Field(min_length=1)] = ["sft", "rl"]
    """The SFT checkpoint, the baseline after RL (first seed), random weights in `random_model`'s shape."""
    random_model: ModelSettings = ModelSettings(
        hidden_size=576,
        layers=30,
        intermediate_size=1536,
        attention_heads=9,
        key_value_heads=3,
        head_dim=64,
    )
    random_tokens: Positive = 600
    """Sampled tokens a setting with the random model, in the place of `audit.tokens`: it is large."""
    workers: Positive = 1
    """Processes, of one thread each, among which the settings of an audit are dealt out."""
    audit: ParityAuditSettings = ParityAuditSettings()
    ablation: ParityAblationSettings = ParityAblationSettings()
