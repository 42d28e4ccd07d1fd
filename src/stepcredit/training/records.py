"""What an RL step leaves behind: a row of metrics, and every few steps the rollouts with their credit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from stepcredit.credit.paragraphs import split_paragraphs
from stepcredit.credit.scheme import GroupCredit
from stepcredit.modeling.tokenizer import TextCodec
from stepcredit.rollouts import Group
from stepcredit.training.rollout_columns import credit_columns, rollout_columns

ROLLOUTS_SCHEMA = pa.schema(
    {
        "step": pa.int64(),
        "group": pa.int64(),
        "sample": pa.int64(),
        "nums": pa.list_(pa.int64()),
        "target": pa.int64(),
        "completion": pa.string(),
        "answer": pa.string(),
        "reward": pa.float64(),
        "well_formed": pa.bool_(),
        "finished": pa.bool_(),
        "tokens": pa.int64(),
        "advantage": pa.float64(),
        "paragraphs": pa.list_(
            pa.struct(
                {
                    "text": pa.string(),
                    "tokens": pa.int64(),
                    "potential_before": pa.float64(),
                    "potential_after": pa.float64(),
                    "shaping": pa.float64(),
                }
            )
        ),
        "likelihoods": pa.list_(pa.list_(pa.float64())),
        "bank": pa.list_(pa.struct({"answer": pa.string(), "correct": pa.bool_(), "count": pa.int64()})),
    }
)


def rollout_metrics(groups: Sequence[Group], codec: TextCodec, max_new_tokens: int) -> dict[str, float]:
    """Means over the rollouts of a step; paragraphs are those that blank lines make, without any guard."""
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    lengths = np.array([len(rollout) for rollout in rollouts])
    spans = [split_paragraphs(codec.pieces(rollout.completion.token_ids), None).spans for rollout in rollouts]
    paragraph_lengths = [end - start for paragraphs in spans for start, end in paragraphs]
    return {
        "reward": float(np.mean([rollout.reward for rollout in rollouts])),
        "well_formed": float(np.mean([rollout.verdict.well_formed for rollout in rollouts])),
        "finished": float(np.mean([rollout.completion.finished for rollout in rollouts])),
        "mixed_groups": float(np.mean([group.is_mixed for group in groups])),
        "length": float(lengths.mean()),
        "length_max": int(lengths.max()),
        "at_cap": float(np.mean(lengths >= max_new_tokens)),
        "paragraphs": float(np.mean([len(paragraphs) for paragraphs in spans])),
        "paragraph_length": float(np.mean(paragraph_lengths)) if paragraph_lengths else float("nan"),
        "completion_tokens": int(lengths.sum()),
        "lag": float(np.average([rollout.completion.lag for rollout in rollouts], weights=lengths)),
    }


def rollout_rows(step: int, groups: Sequence[Group], credits: Sequence[GroupCredit]) -> Iterator[dict[str, Any]]:
    """Rows of `ROLLOUTS_SCHEMA` for the rollouts of a step."""
    for index, (group, credit) in enumerate(zip(groups, credits, strict=True)):
        for sample, (rollout, rollout_credit) in enumerate(zip(group.rollouts, credit.rollouts, strict=True)):
            yield {
                "step": step,
                "group": index,
                "sample": sample,
                "nums": list(group.puzzle.nums),
                "target": group.puzzle.target,
                **rollout_columns(rollout),
                **credit_columns(rollout_credit, credit),
            }
