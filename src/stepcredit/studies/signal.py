"""Does the potential mean anything? At boundaries of held-out rollouts it is set against sampled success rates.

Source: CPAS, "What does the signal look like?": one checkpoint, the scorer's potential against the success rate of 20
sampled answers, Spearman 0.57. Two success rates are sampled here: of continuations, which may go on reasoning, and
of answers, which are submitted at once, after the template that opens the solution.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from stepcredit.countdown.prompt import SOLUTION_TEMPLATE
from stepcredit.countdown.puzzle import Puzzle
from stepcredit.credit.contrastive_potential import ContrastivePotential
from stepcredit.credit.paragraphs import split_paragraphs
from stepcredit.modeling.tokenizer import TextCodec
from stepcredit.rollouts import Group
from stepcredit.sampling.continuations import Continuations, Prefix
from stepcredit.sampling.groups import sample_groups
from stepcredit.sampling.sampler import Sampler
from stepcredit.scoring.scorer import Scorer
from stepcredit.seeds import derive_seed, epoch_order
from stepcredit.settings.signal import SignalJob

SCHEMA = pa.schema(
    {
        "puzzle": pa.int64(),
        "nums": pa.list_(pa.int64()),
        "target": pa.int64(),
        "sample": pa.int64(),
        "boundary": pa.int64(),
        "boundaries": pa.int64(),
        "prefix_tokens": pa.int64(),
        "potential_frozen": pa.float64(),
        "potential_moving": pa.float64(),
        "continuations": pa.int64(),
        "successes": pa.int64(),
        "finished": pa.int64(),
        "answers_right": pa.int64(),
        "tokens": pa.int64(),
    }
)
"""One row a boundary. `boundary` counts from 0, the empty reasoning, to `boundaries` - 1; `answers_right` is of as many
answers as there are `continuations`; `tokens` were sampled for both."""


def look(
    sampler: Sampler, codec: TextCodec, puzzles: Sequence[Puzzle], job: SignalJob, scorers: Mapping[str, Scorer]
) -> list[dict[str, Any]]:
    """Rows of `SCHEMA` for one checkpoint.

    Args:
        sampler: samples from the checkpoint.
        puzzles: held-out ones; `job.signal.puzzles` of them are used.
        scorers: `frozen` and `moving`, in the order in which their potentials are computed.
    """
    settings = job.signal
    chosen = epoch_order(len(puzzles), 0, settings.seed, "signal")[: settings.puzzles]
    seeds = [[derive_seed(settings.seed, "signal", i, k) for k in range(settings.rollouts)] for i in chosen]
    groups = sample_groups(
        sampler,
        codec,
        [puzzles[i] for i in chosen],
        seeds,
        temperature=settings.temperature,
        max_new_tokens=job.max_new_tokens,
    )
    rows = [row for index, group in zip(chosen, groups, strict=True) for row in _boundaries(codec, index, group, job)]
    by_puzzle = dict(zip(chosen, groups, strict=True))
    for name, scorer in scorers.items():
        potentials = _potentials(by_puzzle, ContrastivePotential(scorer, codec, settings.shaping))
        for row in rows:
            potential = potentials[row["puzzle"], row["sample"]]
            row[f"potential_{name}"] = potential[row["boundary"]] if potential else None
    rows = _draw([row for row in rows if all(row[f"potential_{name}"] is not None for name in scorers)], job)
    _sample(rows, sampler, codec, job)
    return [{name: row[name] for name in SCHEMA.names} for row in rows]


def _boundaries(codec: TextCodec, index: int, group: Group, job: SignalJob) -> list[dict[str, Any]]:
    """A row for each boundary of each rollout of a group, `prefix` its tokens before the boundary."""
    shaping = job.signal.shaping
    rows: list[dict[str, Any]] = []
    for sample, rollout in enumerate(group.rollouts):
        ids = rollout.completion.token_ids
        prefixes = split_paragraphs(codec.pieces(ids), shaping.max_paragraph_len, shaping.unit).prefixes
        rows += [
            {
                "puzzle": index,
                "nums": list(group.puzzle.nums),
                "target": group.puzzle.target,
                "sample": sample,
                "boundary": boundary,
                "boundaries": len(prefixes),
                "prefix_tokens": length,
                "prefix": Prefix(group.puzzle, rollout.prompt_ids, ids[:length]),
            }
            for boundary, length in enumerate(prefixes)
        ]
    return rows


def _potentials(groups: Mapping[int, Group], scheme: ContrastivePotential) -> dict[tuple[int, int], list[float]]:
    """The potential along each rollout of each puzzle's group, empty where it was not shaped."""
    credits, _ = scheme.assign(list(groups.values()))
    return {
        (puzzle, sample): credit.potential
        for puzzle, group_credit in zip(groups, credits, strict=True)
        for sample, credit in enumerate(group_credit.rollouts)
    }


def _draw(rows: Sequence[dict[str, Any]], job: SignalJob) -> list[dict[str, Any]]:
    """`job.signal.boundaries` of the rows at random, or all where there are fewer; in order."""
    generator = random.Random(derive_seed(job.signal.seed, "boundaries"))
    drawn = generator.sample(range(len(rows)), min(job.signal.boundaries, len(rows)))
    return [rows[index] for index in sorted(drawn)]


def _sample(rows: Sequence[dict[str, Any]], sampler: Sampler, codec: TextCodec, job: SignalJob) -> None:
    """Add what became of the continuations and answers of each row's prefix."""
    settings = job.signal
    continuations = Continuations(
        sampler, codec, settings.continuations, settings.temperature, job.max_new_tokens, settings.seed
    )
    template = tuple(codec.encode(SOLUTION_TEMPLATE))
    prefixes = [row["prefix"] for row in rows]
    opened = [Prefix(p.puzzle, p.prompt_ids, p.completion_ids + template) for p in prefixes]
    for row, outcome, answered in zip(rows, continuations.sample(prefixes), continuations.sample(opened), strict=True):
        row["continuations"] = settings.continuations
        row["successes"] = outcome.successes
        row["finished"] = outcome.finished
        row["answers_right"] = answered.successes
        row["tokens"] = outcome.tokens + answered.tokens
