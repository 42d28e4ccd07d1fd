"""Seconds per phase of a step."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any


class Stopwatch:
    """Wall and CPU seconds (of this process, all threads) of the named phases of each step."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    @contextlib.contextmanager
    def phase(self, step: int, name: str) -> Iterator[None]:
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.rows.append(
            {
                "step": step,
                "phase": name,
                "seconds": time.perf_counter() - wall,
                "cpu_seconds": time.process_time() - cpu,
            }
        )
