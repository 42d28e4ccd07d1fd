"""Notices when an engine's weights change behind the plugin's back.

A trainer with an update path of its own (prime-rl, vLLM's weight transfer) may keep the prefix cache, and may change
the weights in the middle of a scoring. All such paths of vLLM end in one call to the workers.
"""

from __future__ import annotations

import functools
from typing import Any

_HARMLESS = ("liveness_probe",)
"""Calls to the workers that are known to change nothing (prime-rl's sign of life); any other may."""


class WeightWatch:
    """Watches the calls of one API server to the workers of its engine.

    Attributes:
        version: grows when a call that may change the weights begins, and when it ends.
        unwatched: the engine's `collective_rpc` as it was.
    """

    def __init__(self, engine: Any) -> None:
        self.version = 0
        self.unwatched = engine.collective_rpc

        @functools.wraps(self.unwatched)
        async def collective_rpc(method: Any, *arguments: Any, **options: Any) -> Any:
            if method in _HARMLESS:
                return await self.unwatched(method, *arguments, **options)
            self.version += 1
            try:
                return await self.unwatched(method, *arguments, **options)
            finally:
                self.version += 1

        engine.collective_rpc = collective_rpc

    @property
    def cache_salt(self) -> str | None:
        """Keeps the prefix cache of these weights apart from that of earlier ones; None for the first weights."""
        return f"stepcredit-{self.version}" if self.version else None
