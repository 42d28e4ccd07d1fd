"""Contrastive potential advantage shaping as an algorithm of prime-rl. Runs in prime-rl's environment."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from prime_rl.orchestrator.algo.base import Algorithm, iter_trainable_traces
from prime_rl.orchestrator.algo.routing import assign_advantages

from stepcredit.training.prime_rl.credit import API_KEY, TraceCredit


class ContrastivePotentialAlgorithm(Algorithm):
    """Group advantage plus the shaping of each paragraph (SPEC section 4)."""

    action_loss_type = "rl"

    def __init__(self, config: Any, policy_pool: Any) -> None:
        super().__init__(config, policy_pool)
        self._config = config
        self._credit: TraceCredit | None = None

    async def setup(self) -> None:
        """Load the tokenizer and connect to the scorer."""
        self._credit = await asyncio.to_thread(
            TraceCredit.connect,
            self.policy_pool.model_name,
            self._config.scorer,
            self._config.shaping,
            os.environ.get(API_KEY),
        )

    async def score_group(self, episodes: list[Any]) -> None:
        """Assign the advantages of a group's clean traces; scoring runs in a thread, the event loop goes on."""
        assert self._credit is not None, "prime-rl calls setup first"
        traces = [trace for _, trace in iter_trainable_traces(episodes)]
        if not traces:
            return
        for trace, advantages in zip(traces, await asyncio.to_thread(self._credit.assign, traces), strict=True):
            assign_advantages(trace, advantages)
