"""Held-out rollouts of one checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from stepcredit.countdown.puzzle import Puzzle
from stepcredit.modeling.tokenizer import TextCodec
from stepcredit.rollouts import Group
from stepcredit.sampling.groups import sample_groups
from stepcredit.sampling.sampler import NOTHING, Sampler
from stepcredit.seeds import derive_seed
from stepcredit.settings.evaluation import EvaluationJob

SCHEMA = pa.schema(
    {
        "puzzle": pa.int64(),
        "nums": pa.list_(pa.int64()),
        "target": pa.int64(),
        "sample": pa.int64(),
        "completion": pa.string(),
        "answer": pa.string(),
        "reward": pa.float64(),
        "reason": pa.string(),
        "well_formed": pa.bool_(),
        "finished": pa.bool_(),
        "tokens": pa.int64(),
    }
)


def evaluate(
    sampler: Sampler, codec: TextCodec, puzzles: Sequence[Puzzle], settings: EvaluationJob
) -> list[dict[str, Any]]:
    """Rows of `SCHEMA`: `samples` rollouts of every puzzle.

    The seed of a rollout depends on its puzzle and sample alone, so that two checkpoints face the same noise.
    """
    seeds = [
        [derive_seed(settings.seed, "evaluation", index, sample) for sample in range(settings.samples)]
        for index in range(len(puzzles))
    ]
    groups = sample_groups(
        sampler,
        codec,
        puzzles,
        seeds,
        temperature=settings.temperature,
        max_new_tokens=settings.max_new_tokens,
        recording=NOTHING,
    )
    return list(_rows(groups))


def _rows(groups: Iterable[Group]) -> Iterable[dict[str, Any]]:
    for index, group in enumerate(groups):
        for sample, rollout in enumerate(group.rollouts):
            yield {
                "puzzle": index,
                "nums": list(group.puzzle.nums),
                "target": group.puzzle.target,
                "sample": sample,
                "completion": rollout.text,
                "answer": rollout.verdict.answer,
                "reward": rollout.reward,
                "reason": rollout.verdict.reason,
                "well_formed": rollout.verdict.well_formed,
                "finished": rollout.completion.finished,
                "tokens": len(rollout),
            }
