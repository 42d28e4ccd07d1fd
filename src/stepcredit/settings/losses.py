"""The losses as the configuration knows them: one class a loss, with the settings it has in `stepcredit.losses`.

Nothing here imports torch, so that the rules can read a configuration; a test holds names, settings and defaults equal
to those of the losses.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from stepcredit.settings.section import Rate, Section, Share

AtLeastZero = Annotated[float, Field(ge=0)]


class ReinforceSettings(Section):
    name: Literal["reinforce"] = "reinforce"


class ImportanceSamplingSettings(Section):
    name: Literal["is"] = "is"


class TISSettings(Section):
    name: Literal["tis"] = "tis"
    cap: Rate = 2.0


class MISSettings(Section):
    name: Literal["mis"] = "mis"
    low: AtLeastZero = 0.5
    high: AtLeastZero = 5.0

    @model_validator(mode="after")
    def _ordered(self) -> MISSettings:
        if self.low > self.high:
            raise ValueError("low must not exceed high")
        return self


class PPOClipSettings(Section):
    name: Literal["ppo_clip"] = "ppo_clip"
    epsilon_low: AtLeastZero = 0.2
    epsilon_high: AtLeastZero = 0.2


class DPPOSettings(Section):
    """The default loss of prime-rl (SPEC section 3)."""

    name: Literal["dppo_kl"] = "dppo_kl"
    dppo_mask_low: Share = 0.2
    dppo_mask_high: Share = 0.2
    adv_tau: float = 1.0
    kl_tau: AtLeastZero = 1e-3


class ScoreCenteringSettings(Section):
    name: Literal["sc"] = "sc"


class SampledScoreCenteringSettings(Section):
    name: Literal["sc_sampled"] = "sc_sampled"


class TISScoreCenteringSettings(Section):
    name: Literal["tis_sc"] = "tis_sc"
    cap: Rate = 2.0


class SampledTISScoreCenteringSettings(Section):
    name: Literal["tis_sc_sampled"] = "tis_sc_sampled"
    cap: Rate = 2.0


LossSettings = Annotated[
    ReinforceSettings
    | ImportanceSamplingSettings
    | TISSettings
    | MISSettings
    | PPOClipSettings
    | DPPOSettings
    | ScoreCenteringSettings
    | SampledScoreCenteringSettings
    | TISScoreCenteringSettings
    | SampledTISScoreCenteringSettings,
    Field(discriminator="name"),
]
"""Any loss of the family, by its `name`."""
