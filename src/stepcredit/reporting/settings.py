"""What the tables need to know of the configuration."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from stepcredit.config import (
    ArmSettings,
    Config,
    EvaluationSettings,
    Name,
    ParitySettings,
    Section,
    StatisticsSettings,
    SweepSettings,
)
from stepcredit.evaluation.statistics import Bootstrap
from stepcredit.stability_settings import StabilitySettings


class TablesSettings(Section):
    """Arms in the order of the configuration (colours follow it), what was evaluated, how to resample."""

    arms: Annotated[dict[Name, ArmSettings], Field(min_length=1)]
    baseline: str
    seeds: Annotated[list[int], Field(min_length=1)]
    evaluation: EvaluationSettings
    statistics: StatisticsSettings
    sweep: SweepSettings
    stability: StabilitySettings
    parity: ParitySettings

    @model_validator(mode="after")
    def _baseline_is_an_arm(self) -> TablesSettings:
        if self.baseline not in self.arms:
            raise ValueError(f'baseline "{self.baseline}" is not one of the arms: {", ".join(self.arms)}')
        return self

    @classmethod
    def from_config(cls, config: Config) -> TablesSettings:
        """The part of a whole configuration that the tables read."""
        return cls(**{name: getattr(config, name) for name in cls.model_fields})

    @property
    def bootstrap(self) -> Bootstrap:
        statistics = self.statistics
        return Bootstrap(statistics.resamples, statistics.confidence, statistics.seed)
