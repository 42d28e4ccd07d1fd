"""Scorers that ask a vLLM server: naive, batched and cached (the three implementations of CPAS)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, NamedTuple

import numpy as np

from stepcredit.scoring.scorer import (
    LogLikelihoods,
    Scorer,
    Scoring,
    ScoringCost,
    ScoringRequest,
    deduplicate,
)
from stepcredit.scoring.transport import HttpClient, Reply, ServerError
from stepcredit.scoring.vllm_plugin import SCORE_PATH
from stepcredit.scoring.vllm_plugin.batch import pack_tokens

GENERATE_PATH = "/inference/v1/generate"

_ROUNDING = 1e-3
"""How far above zero rounding may lift a log-probability."""


def http_scorer(kind: Literal["naive", "batched", "cached"], client: HttpClient) -> Scorer:
    """The scorer of that name on the server of `client`."""
    return NaiveScorer(client) if kind == "naive" else BatchedScorer(client, use_cache=kind == "cached")


class NaiveScorer:
    """One request a logical scoring, to vLLM's own endpoint, with the log-probs of the whole sequence back.

    The server must be started with `--enable-scale-out`.
    """

    def __init__(self, client: HttpClient, concurrency: int = 64) -> None:
        """
        Args:
            concurrency: requests under way at a time.
        """
        self._client = client
        self._concurrency = concurrency

    def score(self, requests: Sequence[ScoringRequest]) -> tuple[list[LogLikelihoods], ScoringCost]:
        """See `Scorer.score`.

        Raises:
            ServerError: the server refused a scoring, or did not answer it rightly.
        """
        scorings = [scoring for request in requests for scoring in request.scorings()]
        with ThreadPoolExecutor(self._concurrency) as pool:
            try:
                replies = list(pool.map(self._score_one, scorings))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        unique, _ = deduplicate(requests)
        cost = ScoringCost(
            scorings=len(scorings),
            scorings_unique=len(unique),
            tokens_computed=sum(len(scoring.tokens) for scoring in scorings),
            requests=len(scorings),
            bytes=sum(size for _, size in replies),
        )
        return _split([value for value, _ in replies], requests), cost

    def _score_one(self, scoring: Scoring) -> tuple[float, int]:
        reply = self._client.post(
            GENERATE_PATH,
            {
                "token_ids": scoring.tokens,
                "sampling_params": {"max_tokens": 1, "temperature": 0.0, "prompt_logprobs": 1},
            },
        )
        return _sum_prompt_logprobs(reply.fields.get("prompt_logprobs"), scoring), reply.size


class BatchedScorer:
    """The scorings that differ, in one request to the plugin's endpoint (more beyond the server's limits).

    With `use_cache` the server reads its prefix cache up to the start of each span ("cached"), otherwise it
    computes every sequence in full ("batched").
    """

    def __init__(self, client: HttpClient, *, use_cache: bool) -> None:
        self._client = client
        self._use_cache = use_cache
        self._limits: tuple[int, int] | None = None

    def score(self, requests: Sequence[ScoringRequest]) -> tuple[list[LogLikelihoods], ScoringCost]:
        """See `Scorer.score`.

        Raises:
            ServerError: the server refused the scorings, or did not answer them rightly.
        """
        unique, positions = deduplicate(requests)
        values: list[float] = []
        cached = computed = sent = received = 0
        for batch in self._batches(unique):
            reply = self._client.post(SCORE_PATH, _body(batch, self._use_cache))
            scored = _checked_scores(reply, batch)
            values.extend(scored.logprobs)
            cached += sum(scored.cached_tokens)
            computed += scored.computed_tokens
            sent += 1
            received += reply.size
        cost = ScoringCost(
            scorings=sum(map(len, requests)),
            scorings_unique=len(unique),
            tokens_computed=computed,
            tokens_cached=cached,
            requests=sent,
            bytes=received,
        )
        scores = np.array(values, dtype=np.float64)
        return [scores[position] for position in positions], cost

    def _batches(self, scorings: Sequence[Scoring]) -> Iterator[list[Scoring]]:
        """Runs of scorings that fit into one request, in order: neighbours share prefixes."""
        if self._limits is None:
            described = self._client.get(SCORE_PATH).fields
            self._limits = int(described["max_sequences"]), int(described["max_body_bytes"])
        max_sequences, max_bytes = self._limits
        batch: list[Scoring] = []
        size = 0
        for scoring in scorings:
            needed = _encoded_size(scoring)
            if batch and (len(batch) == max_sequences or size + needed > max_bytes):
                yield batch
                batch, size = [], 0
            batch.append(scoring)
            size += needed
        if batch:
            yield batch


def _body(batch: Sequence[Scoring], use_cache: bool) -> dict[str, Any]:
    return {
        **pack_tokens([scoring.tokens for scoring in batch]),
        "target_spans": [[scoring.start, len(scoring.tokens)] for scoring in batch],
        "use_cache": use_cache,
    }


def _encoded_size(scoring: Scoring) -> int:
    """An upper bound on what a scoring adds to a body, in bytes: base64 of int32, its length and its span."""
    return 6 * len(scoring.tokens) + 64


class _Scored(NamedTuple):
    """A checked answer of the plugin's endpoint; the lists have an entry for each scoring."""

    logprobs: list[float]
    cached_tokens: list[int]
    computed_tokens: int


def _checked_scores(reply: Reply, batch: Sequence[Scoring]) -> _Scored:
    scored = _Scored(*(reply.fields.get(key) for key in _Scored._fields))  # type: ignore[arg-type]
    for values in (scored.logprobs, scored.cached_tokens):
        if not isinstance(values, list) or len(values) != len(batch):
            raise ServerError(f"the server did not answer {len(batch)} scorings with as many scores")
    if type(scored.computed_tokens) is not int:
        raise ServerError("the server did not say how many tokens it computed")
    for index, (value, cached, scoring) in enumerate(zip(scored.logprobs, scored.cached_tokens, batch, strict=True)):
        _check_logprob(value, f"scoring {index}")
        if type(cached) is not int or not 0 <= cached < scoring.start:
            raise ServerError(f"scoring {index}: {cached!r} cached tokens, but its span starts at {scoring.start}")
    return scored


def _sum_prompt_logprobs(rows: Any, scoring: Scoring) -> float:
    """Sum over the span of vLLM's prompt log-probs, for each position a mapping from token id to log-prob."""
    if not isinstance(rows, list) or len(rows) != len(scoring.tokens):
        raise ServerError(f"the server did not answer {len(scoring.tokens)} tokens with as many prompt_logprobs")
    values = []
    for position in range(scoring.start, len(scoring.tokens)):
        try:
            value = rows[position][str(scoring.tokens[position])]["logprob"]
        except (TypeError, KeyError):
            raise ServerError(f"prompt_logprobs has no log-prob of the token at position {position}") from None
        _check_logprob(value, f"the token at position {position}")
        values.append(value)
    return math.fsum(values)


def _check_logprob(value: Any, what: str) -> None:
    """-9999 is how vLLM says minus infinity over HTTP."""
    if type(value) is not float or not math.isfinite(value) or value > _ROUNDING or value == -9999.0:
        raise ServerError(f"{what}: {value!r} is no log-probability")


def _split(values: Sequence[float], requests: Sequence[ScoringRequest]) -> list[LogLikelihoods]:
    """The values of all logical scorings, as one matrix [boundaries, answers] for each request."""
    ends = np.cumsum([len(request) for request in requests])[:-1]
    parts = np.split(np.array(values, dtype=np.float64), ends)
    return [
        part.reshape(len(request.boundaries), len(request.answers))
        for part, request in zip(parts, requests, strict=True)
    ]
