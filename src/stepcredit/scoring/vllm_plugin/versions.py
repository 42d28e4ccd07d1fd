"""Which vLLM the plugin fits: it replaces two private methods, so it must know them."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Release:
    """What differs between the releases of vLLM that the plugin fits.

    Attributes:
        guard_module: the module that holds the paths which `--api-key` guards.
        client_error: the class in `vllm.exceptions` of a request that is wrong.
        v2_runner: whether the V2 model runner knows the log-probs of given tokens.
    """

    guard_module: str
    client_error: str
    v2_runner: bool


RELEASES = {
    "0.26": Release("vllm.entrypoints.serve.utils.server_utils", "VLLMValidationError", v2_runner=False),
    "0.32": Release("vllm.entrypoints.serve.middleware.authenticate", "VLLMClientError", v2_runner=True),
}
"""The supported releases: prime-rl's, and that of `pyproject.toml`."""


class UnsupportedVLLMError(RuntimeError):
    """This vLLM is not one that the plugin was written and tested for."""


def incompatibility() -> str | None:
    """What does not fit about the installed vLLM, in a sentence; None where all fits."""
    import vllm

    if _release_number() not in RELEASES:
        return (
            f"vLLM {vllm.__version__} is installed, and the stepcredit scoring plugin supports"
            f" {' and '.join(RELEASES)} only; install one of them, or leave it out of VLLM_PLUGINS"
        )
    return next(filter(None, (_difference(*expected) for expected in _expected_signatures())), None)


def require_supported() -> None:
    """Raises:
    UnsupportedVLLMError: the installed vLLM does not fit.
    """
    problem = incompatibility()
    if problem:
        raise UnsupportedVLLMError(problem)


def installed_release() -> Release:
    """What the plugin knows of the installed vLLM, which is a supported one."""
    return RELEASES[_release_number()]


def guarded_prefixes() -> tuple[str, ...]:
    """How the paths begin that the server's API key guards."""
    prefixes: tuple[str, ...] = importlib.import_module(installed_release().guard_module).GUARDED_PREFIX
    return prefixes


def client_error() -> type[Exception]:
    """What vLLM raises for a request that is wrong."""
    error: type[Exception] = getattr(importlib.import_module("vllm.exceptions"), installed_release().client_error)
    return error


def _release_number() -> str:
    import vllm

    return ".".join(vllm.__version__.split("+")[0].split(".")[:2])


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
