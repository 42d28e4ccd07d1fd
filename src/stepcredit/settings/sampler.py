"""The vLLM engine."""

from __future__ import annotations

from typing import Literal

from stepcredit.settings.section import Positive, Section, Share

KVCacheType = Literal["auto", "fp8_e4m3", "fp8_e5m2"]
"""Types of the KV cache that vLLM stores as they say; several others start on a CPU and return garbage."""


class SamplerSettings(Section):
    """The vLLM engine: one in process per job."""

    dtype: Literal["float32", "bfloat16", "auto"] = "float32"
    max_model_len: Positive = 512
    max_concurrent: Positive = 128
    kv_cache_mib: Positive = 256
    block_size: Positive = 32
    kv_cache_dtype: KVCacheType = "auto"
    gpu_memory_utilization: Share = 0.4
    logprobs_mode: Literal["processed_logprobs", "raw_logprobs"] = "processed_logprobs"
    """Raw log-probs ignore the temperature: wrong for a trainer at any but 1 (a setting of the parity ablation)."""
    reset_cache: bool = True
    """Forget the prefix cache at each weight update; false serves stale state (a setting of the parity ablation)."""
    update_after: Positive | None = None
    """A weight update lands in flight, after so many tokens of each completion; null: between batches."""
