"""Weights that another changes while the service scores, on an engine of dictionaries that keeps its prefix cache."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from stepcredit.scoring.vllm_plugin.batch import SpanBatch
from stepcredit.scoring.vllm_plugin.service import SpanService
from stepcredit.scoring.vllm_plugin.settings import PluginSettings
from stepcredit.scoring.vllm_plugin.versions import Release
from stepcredit.scoring.vllm_plugin.weight_watch import WeightWatch

BATCH = SpanBatch([[1, 2, 3], [1, 2, 4, 5]], [2, 2], use_cache=True)


def configuration(**changes: Any) -> Any:
    fields = {
        "use_v2_model_runner": False,
        "kv_transfer_config": None,
        "cache_config": SimpleNamespace(block_size=32),
        "model_config": SimpleNamespace(logprobs_mode="raw_logprobs", max_model_len=64, get_vocab_size=lambda: 8),
    }
    return SimpleNamespace(**fields | changes)


class Engine:
    """Every log-prob is minus the weight that computed it; `meanwhile` runs in the first request that is computed."""

    def __init__(self) -> None:
        self.vllm_config = configuration()
        self.weight = 1.0
        self.cache: dict[tuple[Any, ...], float] = {}
        self.calls: list[Any] = []
        self.meanwhile: Any = None

    async def collective_rpc(self, method: Any, args: Any = ()) -> None:
        self.calls.append(method)
        await asyncio.sleep(0)
        if method == "update":
            (self.weight,) = args

    async def generate(self, prompt: Any, parameters: Any, _: str) -> AsyncIterator[Any]:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile:
            await meanwhile(self)
        start, last = parameters.extra_args["stepcredit_span"]
        tokens = [*prompt["prompt_token_ids"], last]
        prefix = (prompt.get("cache_salt"), *tokens[:start])
        weight = self.cache.setdefault(prefix, self.weight)
        await asyncio.sleep(0)
        rows = SimpleNamespace(token_ids=tokens[start:], logprobs=[-weight] * len(tokens[start:]))
        yield SimpleNamespace(finished=True, num_cached_tokens=0, prompt_logprobs=rows)


def scores(service: SpanService) -> list[float]:
    return [score.logprob for score in asyncio.run(service.score(BATCH))]


def test_a_prefix_of_earlier_weights_is_not_read() -> None:
    engine = Engine()
    service = SpanService(engine, PluginSettings())
    assert scores(service) == scores(service) == [-1, -2]
    asyncio.run(engine.collective_rpc("update", args=(2.0,)))
    assert scores(service) == [-2, -4]
    assert {prefix[0] for prefix in engine.cache} == {None, "stepcredit-2"}


def test_a_batch_that_an_update_met_is_scored_again_as_a_whole() -> None:
    engine = Engine()
    service = SpanService(engine, PluginSettings(max_concurrent=1))

    async def update(engine: Engine) -> None:
        await engine.collective_rpc("update", args=(3.0,))

    engine.meanwhile = update
    assert scores(service) == [-3, -6]


def test_an_update_that_fails_halfway_counts_as_one() -> None:
    engine = Engine()

    async def fails(method: Any) -> None:
        raise RuntimeError("lost a worker")

    engine.collective_rpc = fails  # type: ignore[method-assign,assignment]
    watch = WeightWatch(engine)
    with pytest.raises(RuntimeError, match="lost a worker"):
        asyncio.run(engine.collective_rpc("update"))
    assert watch.version == 2


def test_a_sign_of_life_and_an_update_of_our_own_change_no_version() -> None:
    engine = Engine()
    watch = WeightWatch(engine)
    asyncio.run(engine.collective_rpc("liveness_probe"))
    asyncio.run(watch.unwatched("reload"))
    assert engine.calls == ["liveness_probe", "reload"]
    assert (watch.version, watch.cache_salt) == (0, None)


def test_a_v2_runner_without_given_tokens_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()
    engine.vllm_config = configuration(use_v2_model_runner=True)
    SpanService(engine, PluginSettings())
    monkeypatch.setattr(
        "stepcredit.scoring.vllm_plugin.probe.installed_release", lambda: Release("any", "any", v2_runner=False)
    )
    with pytest.raises(ValueError, match="VLLM_USE_V2_MODEL_RUNNER=0"):
        SpanService(engine, PluginSettings())
