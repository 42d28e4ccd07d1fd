"""The prime-rl backend."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from stepcredit.settings.rl import RLJob
from stepcredit.settings.section import Section


class PrimeRLSettings(Section):
    """What only the prime-rl backend has."""

    max_off_policy_steps: Annotated[int, Field(ge=0)] = 8
    """Rollouts that are further behind the policy are dropped."""


class PrimeRLJob(RLJob):
    """Everything that one RL run with prime-rl reads."""

    prime_rl: PrimeRLSettings
