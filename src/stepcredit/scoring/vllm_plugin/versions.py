"""Which vLLM the plugin fits: it replaces two private methods, so it must know them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

SUPPORTED_RELEASES = ("0.32",)


class UnsupportedVLLMError(RuntimeError):
    """This vLLM is not one that the plugin was written and tested for."""


def incompatibility() -> str | None:
    """What does not fit about the installed vLLM, in a sentence; None where all fits."""
    import vllm

    release = ".".join(vllm.__version__.split("+")[0].split(".")[:2])
    if release not in SUPPORTED_RELEASES:
        return (
            f"vLLM {vllm.__version__} is installed, and the stepcredit scoring plugin supports"
            f" {' and '.join(SUPPORTED_RELEASES)} only; install that, or leave it out of VLLM_PLUGINS"
        )
    return next(filter(None, (_difference(*expected) for expected in _expected_signatures())), None)


def require_supported() -> None:
    """Raises:
    UnsupportedVLLMError: the installed vLLM does not fit.
    """
    problem = incompatibility()
    if problem:
        raise UnsupportedVLLMError(problem)


def _expected_signatures() -> list[tuple[str, Callable[..., Any], list[str]]]:
    """What is replaced or called inside vLLM, and the parameters it had when the plugin was tested."""
    from vllm.v1.core.kv_cache_coordinator import KVCacheCoordinator
    from vllm.v1.core.kv_cache_manager import KVCacheManager
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    return [
        ("KVCacheManager.get_computed_blocks", KVCacheManager.get_computed_blocks, ["self", "request"]),
        ("KVCacheManager.create_kv_cache_blocks", KVCacheManager.create_kv_cache_blocks, ["self", "blocks"]),
        (
            "KVCacheCoordinator.find_longest_cache_hit",
            KVCacheCoordinator.find_longest_cache_hit,
            ["self", "block_hashes", "max_cache_hit_length"],
        ),
        (
            "GPUModelRunner._get_prompt_logprobs_dict",
            GPUModelRunner._get_prompt_logprobs_dict,
            ["self", "hidden_states", "num_scheduled_tokens"],
        ),
    ]


def _difference(name: str, function: Callable[..., Any], expected: list[str]) -> str | None:
    found = list(inspect.signature(function).parameters)
    if found == expected:
        return None
    return (
        f"vLLM's {name} takes ({', '.join(found)}) where the stepcredit scoring plugin expects"
        f" ({', '.join(expected)}): this build of vLLM is not supported"
    )
