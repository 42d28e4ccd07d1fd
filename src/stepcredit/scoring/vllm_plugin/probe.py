"""Sees whether an engine scores spans rightly: by its configuration, and by three short scorings.

The plugin's parts run in different processes, each of which loads its own plugins: that the endpoint is there
says nothing about the scheduler. The probe scores a span that starts at 2 twice, so that without the cap on
cache hits the second scoring would hit past the span's start, and then one that may use a whole block.
"""

from __future__ import annotations

import logging
from typing import Any

from stepcredit.scoring.vllm_plugin.versions import installed_release

WITHOUT_PLUGIN = (
    "the engine core or a worker did not load the stepcredit plugin; start vLLM with VLLM_PLUGINS=stepcredit in the"
    " environment of all its processes"
)


def check_configuration(configuration: Any) -> None:
    """Refuse the configurations of vLLM (`VllmConfig`) under which a span's score would be something else.

    Raises:
        ValueError: with the setting that has to change.
    """
    mode = configuration.model_config.logprobs_mode
    if mode in ("raw_logits", "processed_logits"):
        raise ValueError(f"span scoring needs --logprobs-mode raw_logprobs or processed_logprobs, not {mode}")
    if configuration.use_v2_model_runner and not installed_release().v2_runner:
        raise ValueError("span scoring needs the V1 model runner of this vLLM: set VLLM_USE_V2_MODEL_RUNNER=0")
    if configuration.kv_transfer_config is not None:
        raise ValueError("span scoring does not cap the hits of a KV connector: leave --kv-transfer-config out")


def probe_sequence(block_size: int, max_length: int, vocabulary: int) -> list[int] | None:
    """A sequence of a block and three tokens; None where none is long enough to be hit too far."""
    length = block_size + 3
    return None if length > max_length else [position % vocabulary for position in range(length)]


def judge_probe(cached_early: int, cached_late: int) -> None:
    """Judge the cached tokens of the repeated early span and of the span that starts after the first block.

    Raises:
        RuntimeError: a cache hit ran past a span's start.
    """
    if cached_early > 1:
        raise RuntimeError(f"{WITHOUT_PLUGIN}: a prefix-cache hit ran past a span's start")
    if cached_late == 0:
        logging.getLogger("vllm.stepcredit").warning("scorings read nothing from the prefix cache: is it on?")
