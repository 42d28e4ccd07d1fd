"""Scores batches of spans on a running asynchronous engine, and changes its weights between batches."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepcredit.scoring.vllm_plugin.batch import BatchLimits, SpanBatch
from stepcredit.scoring.vllm_plugin.probe import WITHOUT_PLUGIN, check_configuration, judge_probe, probe_sequence
from stepcredit.scoring.vllm_plugin.settings import PluginSettings
from stepcredit.scoring.vllm_plugin.shared_lock import SharedLock
from stepcredit.scoring.vllm_plugin.span import Submission, longest_sequence, span_logprob, submission
from stepcredit.scoring.vllm_plugin.weight_watch import WeightWatch
from stepcredit.scoring.vllm_plugin.weights import RELOAD_METHOD


class IncompleteScoreError(RuntimeError):
    """The engine returned no finite log-probability for every token of a span."""


class UpdateError(RuntimeError):
    """The weights could not be replaced; nothing is scored until an update succeeds."""


@dataclass(frozen=True)
class SpanScore:
    """Summed log-prob of a span (nats), and how many tokens were cached and computed."""

    logprob: float
    cached_tokens: int
    computed_tokens: int


class SpanService:
    """Target-span scoring on an `EngineClient`.

    Attributes:
        limits: what a batch must keep to, from the engine's configuration and the plugin's settings.
        updates: weight updates since the start.
    """

    def __init__(self, engine: Any, settings: PluginSettings) -> None:
        """Raises:
        ValueError: the engine is configured in a way under which scores would be wrong.
        """
        configuration = engine.vllm_config
        check_configuration(configuration)
        self._engine = engine
        self._watch = WeightWatch(engine)
        self._settings = settings
        self._v2_runner = bool(configuration.use_v2_model_runner)
        self._lock = SharedLock()
        self._broken: str | None = None
        self._request_ids = (f"span-{uuid.uuid4().hex[:12]}-{number}" for number in itertools.count())
        self.block_size = int(configuration.cache_config.block_size or 16)
        self.limits = BatchLimits(
            max_sequences=settings.max_sequences,
            max_length=longest_sequence(configuration.model_config.max_model_len, v2_runner=self._v2_runner),
            vocabulary=configuration.model_config.get_vocab_size(),
        )
        self.updates = 0

    async def score(self, batch: SpanBatch) -> list[SpanScore]:
        """Score every sequence of a batch, all under the same weights: again where they changed meanwhile.

        Raises:
            IncompleteScoreError: a span got no finite log-probability, also when computed without the cache.
            UpdateError: the last weight update failed.
        """
        async with self._lock.shared():
            if self._broken:
                raise UpdateError(self._broken)
            in_engine = asyncio.Semaphore(self._settings.max_concurrent)

            async def one(index: int) -> SpanScore:
                async with in_engine:
                    return await self._score_one(index, batch)

            while True:
                version = self._watch.version
                scores = await _all_or_none([one(index) for index in range(len(batch.sequences))])
                if version == self._watch.version:
                    return scores

    async def update_weights(self, directory: Path) -> None:
        """Load a checkpoint directory into the running engine, and forget what was cached before.

        Waits for the scorings and all other requests that are under way; new ones wait for the update.

        Raises:
            UpdateError: the checkpoint does not fit the model or cannot be read.
        """
        async with self._lock.exclusive():
            await self._engine.pause_generation(mode="wait", clear_cache=True)
            self._broken = f"the update to {directory} was interrupted"
            try:
                await self._watch.unwatched(RELOAD_METHOD, args=(str(directory),))
                await self._reset_cache()
            except Exception as error:
                self._broken = f"the weights could not be replaced by those of {directory}: {error}"
                raise UpdateError(self._broken) from error
            finally:
                await self._engine.resume_generation()
            self._broken = None
            self.updates += 1

    async def reset_cache(self) -> None:
        """Forget the prefix cache.

        Raises:
            UpdateError: other requests are running, and the cache was kept.
        """
        async with self._lock.exclusive():
            await self._reset_cache()

    async def check_engine(self) -> None:
        """Score three short spans, to see that the engine core caps cache hits (see `probe`).

        Raises:
            RuntimeError: it has not.
        """
        tokens = probe_sequence(self.block_size, self.limits.max_length, self.limits.vocabulary)
        if tokens is None:
            return
        try:
            await self.score(SpanBatch([tokens], [2], use_cache=True))
            repeated = await self.score(SpanBatch([tokens], [2], use_cache=True))
            late = await self.score(SpanBatch([tokens], [self.block_size + 1], use_cache=True))
        except IncompleteScoreError as error:
            raise RuntimeError(f"{WITHOUT_PLUGIN}: {error}") from error
        judge_probe(repeated[0].cached_tokens, late[0].cached_tokens)

    async def _score_one(self, index: int, batch: SpanBatch) -> SpanScore:
        tokens, start = batch.sequences[index], batch.starts[index]
        # A hit past the start would lose rows. The cap prevents that in every configuration known to us;
        # in an unknown one the second try, without the cache, still brings the score.
        for use_cache in (True, False) if batch.use_cache else (False,):
            request = submission(tokens, start, use_cache=use_cache, v2_runner=self._v2_runner)
            output = await self._run(request)
            logprob = span_logprob(output, request.targets, v2_runner=self._v2_runner)
            if logprob is not None:
                cached = output.num_cached_tokens or 0
                return SpanScore(logprob, cached, len(request.prompt) - cached)
        raise IncompleteScoreError(
            f"sequence {index}: the engine returned no finite log-probability for every token of the span"
        )

    async def _run(self, request: Submission) -> Any:
        """The finished output of one request."""
        from vllm.inputs.engine import tokens_input

        output = None
        prompt = tokens_input(request.prompt, cache_salt=self._watch.cache_salt)
        stream = self._engine.generate(prompt, request.parameters, next(self._request_ids))
        async for newest in stream:
            output = newest
        if output is None or not output.finished:
            raise IncompleteScoreError("the engine ended a request without a result")
        return output

    async def _reset_cache(self) -> None:
        if not await self._engine.reset_prefix_cache():
            raise UpdateError("vLLM did not reset its prefix cache: other requests are running")


async def _all_or_none(scorings: Sequence[Any]) -> list[SpanScore]:
    """The results in order; the first failure cancels all others, also in the engine, and is raised."""
    tasks = [asyncio.ensure_future(scoring) for scoring in scorings]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
