"""Scheduler side: a scoring request's prefix-cache hit ends before the row that predicts its span.

Without this cap scores come out wrong, not missing: answers that share first tokens hit each other within one
batch.
"""

from __future__ import annotations

import functools
from typing import Any

from stepcredit.scoring.vllm_plugin.span import read_mark


def cap_cache_hits() -> None:
    """Wrap `KVCacheManager.get_computed_blocks`; does nothing the second time."""
    from vllm.v1.core.kv_cache_manager import KVCacheManager

    original = KVCacheManager.get_computed_blocks
    if hasattr(original, "__stepcredit__"):
        return

    @functools.wraps(original)
    def get_computed_blocks(self: Any, request: Any) -> tuple[Any, int, int]:
        found: tuple[Any, int, int] = original(self, request)
        mark = read_mark(request.sampling_params, request.num_prompt_tokens)
        if mark is None or found[1] <= max(mark.start - 1, 0):
            return found
        return look_up(self, request, mark.start - 1)

    get_computed_blocks.__stepcredit__ = True  # type: ignore[attr-defined]
    KVCacheManager.get_computed_blocks = get_computed_blocks


def look_up(manager: Any, request: Any, longest: int) -> tuple[Any, int, int]:
    """The longest hit of at most `longest` tokens, as `KVCacheManager.get_computed_blocks` returns it.

    Looking up anew, rather than cutting the first result, is right for sliding windows and hybrid models too:
    there the blocks of a longer hit need not hold what a shorter one needs.
    """
    if longest <= 0:
        return manager.empty_kv_cache_blocks, 0, 0
    blocks, cached, uncached = manager.coordinator.find_longest_cache_hit(request.block_hashes, longest)
    return manager.create_kv_cache_blocks(blocks), cached, cached + uncached if uncached else 0
