"""All scorers on one workload, several times in turn: time, tokens, requests, bytes, scores."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from stepcredit.credit.scorers import server_settings
from stepcredit.modeling.model import load_model
from stepcredit.sampling.vllm_engine import VLLMSampler
from stepcredit.scoring.engine import EngineScorer
from stepcredit.scoring.http import http_scorer
from stepcredit.scoring.scorer import Scorer, ScoringCost, ScoringRequest, minimum_by_blocks, minimum_tokens
from stepcredit.scoring.server import ScorerServer
from stepcredit.scoring.tree import TreeScorer
from stepcredit.settings.sampler import SamplerSettings
from stepcredit.settings.scoring import ScoringJob
from stepcredit.studies.scoring.counters import TokenCounters
from stepcredit.studies.scoring.plain import plain_scores

PLAIN = "plain"
SCHEMA = pa.schema(
    {
        "model": pa.string(),
        "scorer": pa.string(),
        "repetition": pa.int64(),
        "wall_s": pa.float64(),
        "scorings": pa.int64(),
        "scorings_unique": pa.int64(),
        "requests": pa.int64(),
        "bytes": pa.int64(),
        "tokens_computed": pa.int64(),
        "tokens_minimum": pa.int64(),
        "tokens_minimum_blocks": pa.int64(),
        "tokens_cached": pa.int64(),
        "scores": pa.list_(pa.float64()),
    }
)
"""One row a scorer and repetition; `plain` is the forward pass that the others are held against.

`tokens_minimum_blocks` is the minimum of a scorer that takes prefixes from a cache of the server's blocks."""

Row = dict[str, Any]
Score = Callable[[Sequence[ScoringRequest]], tuple[Any, ScoringCost]]


@dataclass(frozen=True)
class Contender:
    """A scorer, and what brings it back to where a training step finds it (not timed)."""

    name: str
    score: Score
    prepare: Callable[[], object]


def benchmark(model: str, directory: Path, requests: Sequence[ScoringRequest], job: ScoringJob) -> list[Row]:
    """Rows of `SCHEMA`; none where there is nothing to score.

    The server's cache is emptied before each repetition; that of the engine then holds the rollouts, as after sampling.

    Args:
        model: what the rows call the model in `directory`.
        requests: the workload.
    """
    if not requests:
        return []
    policy = load_model(directory).eval()
    shared = {
        "model": model,
        "tokens_minimum": minimum_tokens(requests),
        "tokens_minimum_blocks": minimum_by_blocks(requests, job.sampler.block_size),
    }
    rows = [_row(shared, PLAIN, 0, *_timed(lambda: (plain_scores(policy, requests), _plain_cost(requests))))]
    with _contenders(directory, requests, job.sampler, TreeScorer(policy)) as contenders:
        for contender in contenders:
            contender.score([replace(requests[0], boundaries=requests[0].boundaries[:1])])  # the first use is slow
        spent = dict.fromkeys((contender.name for contender in contenders), 0.0)
        for repetition in range(job.scoring.repetitions):
            for contender in contenders:
                if spent[contender.name] < job.scoring.enough_seconds:
                    contender.prepare()
                    seconds, scored = _timed(lambda score=contender.score: score(requests))  # type: ignore[misc]
                    spent[contender.name] += seconds
                    rows.append(_row(shared, contender.name, repetition, seconds, scored))
    return rows


def roomy(job: ScoringJob, requests: Sequence[ScoringRequest]) -> ScoringJob:
    """The job with room for the longest sequence of the workload."""
    longest = max((len(scoring.tokens) for request in requests for scoring in request.scorings()), default=0)
    length = max(job.sampler.max_model_len, longest + 2)
    return job.model_copy(update={"sampler": job.sampler.model_copy(update={"max_model_len": length})})


@contextmanager
def _contenders(
    directory: Path, requests: Sequence[ScoringRequest], sampler: SamplerSettings, tree: Scorer
) -> Iterator[list[Contender]]:
    trunks = [{"prompt_token_ids": list(request.trunk)} for request in requests if request.trunk]
    with ScorerServer(directory, server_settings(sampler), wait=False) as server:
        engine = VLLMSampler(directory, sampler, eos_id=0).engine  # while the server starts
        server.wait_until_ready()
        client = server.client()
        counters = TokenCounters(client)
        naive = http_scorer("naive", client)

        def counted(asked: Sequence[ScoringRequest]) -> tuple[Any, ScoringCost]:
            """Naive scoring, its tokens as the server counted them: vLLM does not say so in its answers."""
            before = counters.read()
            scores, cost = naive.score(asked)
            prompts, cached = np.subtract(counters.read(), before).tolist()
            return scores, replace(cost, tokens_computed=prompts - cached, tokens_cached=cached)

        def sampled() -> None:
            engine.reset_prefix_cache()
            engine.generate(trunks, _one_token(), use_tqdm=False)

        yield [
            Contender("naive", counted, server.reset_prefix_cache),
            Contender("batched", http_scorer("batched", client).score, server.reset_prefix_cache),
            Contender("cached", http_scorer("cached", client).score, server.reset_prefix_cache),
            Contender("engine", EngineScorer(engine).score, sampled),
            Contender("tree", tree.score, lambda: None),
        ]


def _one_token() -> Any:
    from vllm import SamplingParams

    return SamplingParams(max_tokens=1, temperature=0.0, detokenize=False)


def _timed(score: Callable[[], tuple[Any, ScoringCost]]) -> tuple[float, tuple[Any, ScoringCost]]:
    started = time.perf_counter()
    scored = score()
    return time.perf_counter() - started, scored


def _plain_cost(requests: Sequence[ScoringRequest]) -> ScoringCost:
    scorings = [scoring for request in requests for scoring in request.scorings()]
    unique = set(scorings)
    return ScoringCost(
        scorings=len(scorings),
        scorings_unique=len(unique),
        tokens_computed=sum(len(scoring.tokens) - 1 for scoring in unique),
    )


def _row(shared: Row, scorer: str, repetition: int, seconds: float, scored: tuple[Any, ScoringCost]) -> Row:
    scores, cost = scored
    return {
        **shared,
        "scorer": scorer,
        "repetition": repetition,
        "wall_s": seconds,
        "scorings": cost.scorings,
        "scorings_unique": cost.scorings_unique,
        "requests": cost.requests,
        "bytes": cost.bytes,
        "tokens_computed": cost.tokens_computed,
        "tokens_cached": cost.tokens_cached,
        "scores": np.concatenate([matrix.ravel() for matrix in scores]).tolist(),
    }
