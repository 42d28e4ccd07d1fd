"""A lock that many scorings share and one weight update takes alone."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator


class SharedLock:
    """Shared or exclusive; whoever waits for exclusive use keeps newcomers out, so that it gets its turn."""

    def __init__(self) -> None:
        self._condition = asyncio.Condition()
        self._sharing = 0
        self._exclusive = False

    @contextlib.asynccontextmanager
    async def shared(self) -> AsyncIterator[None]:
        async with self._condition:
            await self._condition.wait_for(lambda: not self._exclusive)
            self._sharing += 1
        try:
            yield
        finally:
            async with self._condition:
                self._sharing -= 1
                self._condition.notify_all()

    @contextlib.asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        async with self._condition:
            await self._condition.wait_for(lambda: not self._exclusive)
            self._exclusive = True
            try:
                await self._condition.wait_for(lambda: self._sharing == 0)
            except BaseException:
                self._exclusive = False
                self._condition.notify_all()
                raise
        try:
            yield
        finally:
            async with self._condition:
                self._exclusive = False
                self._condition.notify_all()
