"""What the tables need to know of the configuration."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from stepcredit.config import Config
from stepcredit.evaluation.statistics import Bootstrap
from stepcredit.settings.arm import ArmSettings
from stepcredit.settings.evaluation import EvaluationSettings, StatisticsSettings
from stepcredit.settings.parity import ParitySettings
from stepcredit.settings.rl import SweepSettings
from stepcredit.settings.section import Name, Section
from stepcredit.settings.signal import SignalSettings
from stepcredit.settings.stability import StabilitySettings


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
    signal: SignalSettings = SignalSettings()

    @model_validator(mode="after")
    def _baseline_is_an_arm(self) -> TablesSettings:
        if self.baseline not in self.arms:
            raise ValueError(f'baseline "{self.baseline}" is not one of the arms: {", ".join(self.arms)}')
        return self

    @classmethod
    def from_config(cls, config: Config) -> TablesSettings:
        """The part of a whole configuration that the tables read."""
        return cls(**{name: getattr(config, name) for name in cls.model_fields})

    def seeds_of(self, arm: str) -> list[int]:
        """The seeds an arm was trained with."""
        return self.seeds[: self.arms[arm].seeds]

    def steps_of(self, arm: str) -> list[int]:
        """The steps at which an arm was evaluated; step 0, where there is one, is the SFT checkpoint of all."""
        own = self.arms[arm].steps
        return [step for step in self.evaluation.steps if own is None or step == 0 or step in own]

    def common_seeds(self, *arms: str) -> list[int]:
        """The seeds that all the arms were trained with."""
        return min((self.seeds_of(arm) for arm in arms), key=len)

    @property
    def bootstrap(self) -> Bootstrap:
        statistics = self.statistics
        return Bootstrap(statistics.resamples, statistics.confidence, statistics.seed)
