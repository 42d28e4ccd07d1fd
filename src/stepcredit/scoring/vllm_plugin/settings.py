"""The plugin's settings: environment variables, since a vLLM plugin has no command line of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class PluginSettings:
    """Limits of one request, and what a client may do.

    Attributes:
        max_sequences: sequences in one request (`STEPCREDIT_MAX_SEQUENCES`).
        max_body_bytes: size of a request's body (`STEPCREDIT_MAX_BODY_MIB`, in MiB).
        max_concurrent: scorings that one request has in the engine at a time (`STEPCREDIT_MAX_CONCURRENT`).
        allow_updates: whether clients may change the weights and reset the cache (`STEPCREDIT_ALLOW_UPDATES`,
        0 or 1).
    """

    max_sequences: int = 16_384
    max_body_bytes: int = 128 * 2**20
    max_concurrent: int = 1024
    allow_updates: bool = False


def read_settings(environment: Mapping[str, str] = os.environ) -> PluginSettings:
    """Raises:
    ValueError: a variable holds no whole number of the allowed range.
    """
    defaults = PluginSettings()
    mebibytes = _number(environment, "STEPCREDIT_MAX_BODY_MIB", defaults.max_body_bytes // 2**20)
    return PluginSettings(
        max_sequences=_number(environment, "STEPCREDIT_MAX_SEQUENCES", defaults.max_sequences),
        max_body_bytes=mebibytes * 2**20,
        max_concurrent=_number(environment, "STEPCREDIT_MAX_CONCURRENT", defaults.max_concurrent),
        allow_updates=_number(environment, "STEPCREDIT_ALLOW_UPDATES", 0, low=0, high=1) == 1,
    )


def _number(environment: Mapping[str, str], name: str, default: int, low: int = 1, high: int = 2**31) -> int:
    text = environment.get(name, str(default))
    if not text.isdecimal() or not low <= int(text) <= high:
        raise ValueError(f"{name} is {text!r}: it must be a whole number from {low} to {high}")
    return int(text)
