"""The whole configuration.

A stage receives only the sections it reads, as JSON (`Section.model_validate_json`), so that a change of one key
reruns what depends on that key and nothing else.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from stepcredit.settings.arm import ArmSettings
from stepcredit.settings.data import DataSettings
from stepcredit.settings.evaluation import EvaluationSettings, StatisticsSettings
from stepcredit.settings.model import ModelSettings
from stepcredit.settings.parity import ParitySettings
from stepcredit.settings.prime_rl import PrimeRLSettings
from stepcredit.settings.rl import RLSettings, SweepSettings
from stepcredit.settings.sampler import SamplerSettings
from stepcredit.settings.scoring import ScoringSettings
from stepcredit.settings.section import Name, Section
from stepcredit.settings.sft import SFTSettings
from stepcredit.settings.signal import SignalSettings
from stepcredit.settings.stability import StabilitySettings


class ReportSettings(Section):
    title: str = "Paragraph-level credit on Countdown"


class Config(Section):
    """The whole configuration; `config/config.yaml` documents each key for its user."""

    outdir: str = "results"
    backend: Literal["native", "prime-rl"] = "native"
    """What trains: the trainer of this package, or prime-rl (docs/howto/prime-rl.md)."""
    data: DataSettings = DataSettings()
    model: ModelSettings = ModelSettings()
    sft: SFTSettings = SFTSettings()
    sampler: SamplerSettings = SamplerSettings()
    rl: RLSettings = RLSettings()
    prime_rl: PrimeRLSettings = PrimeRLSettings()
    sweep: SweepSettings = SweepSettings()
    arms: Annotated[dict[Name, ArmSettings], Field(min_length=1)]
    baseline: str = "baseline"
    seeds: Annotated[list[int], Field(min_length=1)] = [0, 1, 2]
    evaluation: EvaluationSettings = EvaluationSettings()
    stability: StabilitySettings = StabilitySettings()
    signal: SignalSettings = SignalSettings()
    scoring: ScoringSettings = ScoringSettings()
    statistics: StatisticsSettings = StatisticsSettings()
    parity: ParitySettings = ParitySettings()
    report: ReportSettings = ReportSettings()

    @model_validator(mode="after")
    def _consistent(self) -> Config:
        if self.baseline not in self.arms:
            raise ValueError(f'baseline is "{self.baseline}", which is not one of the arms: {", ".join(self.arms)}')
        if len(set(self.seeds)) != len(self.seeds):
            raise ValueError("seeds must differ from each other")
        for name, arm in self.arms.items():
            self._subset_fits(name, arm)
        for name in self.signal.arms:
            if name not in self.arms:
                raise ValueError(f'signal.arms names "{name}", which is not one of the arms: {", ".join(self.arms)}')
        longest = max(self.rl.max_new_tokens, self.evaluation.max_new_tokens)
        if longest >= self.sampler.max_model_len:
            raise ValueError(
                f"sampler.max_model_len ({self.sampler.max_model_len}) leaves no room for a prompt"
                f" beside {longest} new tokens"
            )
        if self.model.pretrained is None and self.sampler.max_model_len > self.model.max_positions:
            raise ValueError("sampler.max_model_len must not exceed model.max_positions")
        if self.backend == "prime-rl":
            self._prime_rl_can()
        return self

    def _prime_rl_can(self) -> None:
        """What would train differently from what is configured is refused."""
        if self.model.pretrained is None:
            raise ValueError("backend prime-rl trains a pretrained model: set model.pretrained")
        if self.rl.loss.name != "dppo_kl":
            raise ValueError(f"backend prime-rl trains with its own loss, dppo_kl, not with {self.rl.loss.name}")
        for name, arm in self.arms.items():
            if arm.credit not in ("group_advantage", "contrastive_potential"):
                raise ValueError(f"arms.{name}: backend prime-rl has no credit {arm.credit}; the native backend has")
            if arm.scorer is not None and arm.scorer.model == "average":
                raise ValueError(f"arms.{name}: backend prime-rl has no moving-average scorer; the native backend has")

    def _subset_fits(self, name: str, arm: ArmSettings) -> None:
        """The baseline has all seeds and steps, and every arm the last step, so that all can be compared."""
        if name == self.baseline and (arm.seeds or arm.steps):
            raise ValueError(f"arms.{name}: the baseline has all seeds and steps, leave `seeds` and `steps` out")
        every = self.trained_steps
        if arm.steps and arm.steps != [step for step in every if step in arm.steps or step == every[-1]]:
            raise ValueError(f"arms.{name}.steps must be some of {every}, in that order, each once, the last included")

    @property
    def trained_steps(self) -> list[int]:
        """The evaluated steps but 0, which is the SFT checkpoint."""
        return [step for step in self.evaluation.steps if step > 0]

    def seeds_of(self, arm: str) -> list[int]:
        return self.seeds[: self.arms[arm].seeds]

    def steps_of(self, arm: str) -> list[int]:
        """The steps after which an arm is evaluated."""
        return self.arms[arm].steps or self.trained_steps
