"""Drift on the real model: what each loss does to its logits under a constant reward, for each wrong sampler.

Exact: the sampler returns its distribution at each position, and the expectation is taken over all that it may
draw. Source: SC, Eq. 3; zero on policy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from stepcredit.countdown.puzzle import Puzzle
from stepcredit.evaluation.sample import evaluate
from stepcredit.losses import LOSSES, build_loss, expected_update
from stepcredit.modeling.logprobs import packed_logits
from stepcredit.modeling.model import load_model
from stepcredit.modeling.tokenizer import TextCodec
from stepcredit.rollouts import Rollout
from stepcredit.sampling.groups import sample_groups
from stepcredit.sampling.mismatch import MismatchedSampler
from stepcredit.sampling.sampler import Recording, Sampler
from stepcredit.sampling.vllm_engine import VLLMSampler
from stepcredit.seeds import derive_seed
from stepcredit.settings.mismatch import EXACT, MismatchSettings
from stepcredit.settings.stability import DriftJob
from stepcredit.training.drift_probe import completed, half_sum

POSITIONS = 8
"""Of each rollout, evenly spaced."""
SEED = 0
LARGEST_HEAD = 1024
"""Tokens of the sampler's distribution at a position; a larger vocabulary is completed with the trainer's tail."""
HEAD_STUDY = ("sc", "tis_sc")
"""Losses whose drift is also measured by the size of their head."""


@dataclass(frozen=True)
class DriftLog:
    """One row a (mismatch, method, head, rollout); and the samples of the SFT model, where all runs start."""

    drift: list[dict[str, Any]]
    start: list[dict[str, Any]]


def measure_drift(
    job: DriftJob, model_directory: Path, puzzles: Sequence[Puzzle], validation: Sequence[Puzzle]
) -> DriftLog:
    """Drift of every loss under an exact sampler and under each mismatch, on the positions of some rollouts of each."""
    codec = TextCodec.load(model_directory)
    model = load_model(model_directory, job.rl.device).requires_grad_(False)
    engine = VLLMSampler(model_directory, job.sampler, eos_id=codec.eos_id)
    start = evaluate(engine, codec, validation[: job.puzzles], job.evaluation)
    exact = MismatchSettings(name=EXACT, label="exact")
    rows: list[dict[str, Any]] = []
    for mismatch in (exact, *job.mismatches):
        sampler = engine
        if mismatch.kv_cache != job.sampler.kv_cache_dtype:
            cache = job.sampler.model_copy(update={"kv_cache_dtype": mismatch.kv_cache})
            sampler = VLLMSampler(model_directory, cache, eos_id=codec.eos_id)
        wrong = MismatchedSampler(sampler, mismatch, SEED)
        wrong.push_weights(model)
        for index, rollout in enumerate(_rollouts(wrong, codec, puzzles[: job.rollouts], job)):
            p, q = distributions(model, rollout, job.rl.temperature)
            rows.extend({"mismatch": mismatch.name, "rollout": index, **row} for row in _drifts(p, q, job))
    return DriftLog(rows, start)


def _rollouts(sampler: Sampler, codec: TextCodec, puzzles: Sequence[Puzzle], job: DriftJob) -> list[Rollout]:
    """One rollout a puzzle, with the whole distribution at each position."""
    groups = sample_groups(
        sampler,
        codec,
        puzzles,
        [[derive_seed(SEED, "drift", index)] for index in range(len(puzzles))],
        temperature=job.rl.temperature,
        max_new_tokens=job.rl.max_new_tokens,
        recording=Recording(head=LARGEST_HEAD),
    )
    return [rollout for group in groups for rollout in group.rollouts]


def distributions(model: PreTrainedModel, rollout: Rollout, temperature: float) -> tuple[Tensor, Tensor]:
    """Trainer's and sampler's [positions, V] at some positions of a rollout, float64."""
    completion = rollout.completion
    assert completion.head is not None
    places = torch.linspace(0, len(rollout) - 1, min(POSITIONS, len(rollout))).round().long()
    with torch.no_grad():
        logits, _ = packed_logits(model, [(rollout.prompt_ids, completion.token_ids)])
        p = (logits[places.to(logits.device)].cpu() / temperature).double().softmax(dim=-1)
    head = completion.head
    return p, completed(p, torch.from_numpy(head.token_ids)[places], torch.from_numpy(head.logprobs)[places])


def _drifts(p: Tensor, q: Tensor, job: DriftJob) -> Iterator[dict[str, Any]]:
    """Rows of one rollout: every loss with the configured head, and some with each head size."""
    vocabulary = p.shape[1]
    sizes = [size for size in job.head_sizes if size < vocabulary and size != job.rl.head_size]
    asked = [(name, min(job.rl.head_size, vocabulary)) for name in LOSSES]
    if vocabulary <= LARGEST_HEAD:
        sizes.append(vocabulary)
    asked += [(name, size) for name in HEAD_STUDY for size in sizes]
    for name, size in dict.fromkeys(asked):
        loss = build_loss(name)
        updates = [expected_update(loss, *pair, 1.0, size) for pair in zip(p, q, strict=True)]
        yield {
            "method": name,
            "head": size,
            "full": size == vocabulary,
            "drift": _mean(half_sum(update) for update in updates),
            "total_variation": _mean(half_sum(row) for row in q - p),
            "off_difference": _mean(half_sum(found - wanted) for found, wanted in zip(updates, q - p, strict=True)),
        }


def _mean(values: Iterator[float]) -> float:
    found = list(values)
    return sum(found) / len(found)
