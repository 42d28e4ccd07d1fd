"""What score centering costs: the sampler's records, and the trainer's extra terms, in seconds and bytes.

Each repeat measures all variants one after the other, so that a busy machine slows all; CPU seconds hardly see it.
Source: SC, "Making it cheap".
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from stepcredit.countdown.puzzle import Puzzle
from stepcredit.credit.group_advantage import GroupAdvantage
from stepcredit.losses import Loss, build_loss
from stepcredit.modeling.model import load_model
from stepcredit.modeling.tokenizer import TextCodec
from stepcredit.rollouts import Group
from stepcredit.sampling.groups import sample_groups
from stepcredit.sampling.sampler import SAMPLED, Recording
from stepcredit.sampling.vllm_engine import VLLMSampler
from stepcredit.seeds import derive_seed
from stepcredit.settings.stability import MismatchCostJob
from stepcredit.training.optimizer import build_optimizer
from stepcredit.training.policy_update import PolicyUpdate
from stepcredit.training.token_batch import Sample, needed_recording

METHODS = ("reinforce", "sc", "sc_sampled", "tis_sc")
"""What the trainer is measured with; the first is what the others are compared with."""


def measure_cost(job: MismatchCostJob, model_directory: Path, puzzles: Sequence[Puzzle]) -> list[dict[str, Any]]:
    """Rows: `part` (sampler, trainer), `variant`, `head`, `draws`, `repeat`, `seconds`, `cpu_seconds`, `tokens`,
    `bytes`."""
    codec = TextCodec.load(model_directory)
    sampler = VLLMSampler(model_directory, job.sampler, eos_id=codec.eos_id)
    chosen = [puzzles[index % len(puzzles)] for index in range(job.rl.prompts_per_step)]

    def sample(recording: Recording) -> list[Group]:
        return _sample(sampler, codec, chosen, job, recording)

    groups = sample(Recording(head=job.rl.head_size, draws=job.rl.draws))
    update = _Trainer(job, codec, model_directory, groups)
    recordings = _recordings(job, len(codec.tokenizer))
    for method in METHODS:
        update.step(build_loss(method))  # the first step of each allocates what the others use again
    rows: list[dict[str, Any]] = []
    for repeat in range(job.repeats):
        for name, recording in recordings.items():
            with _timed() as measured:
                sampled = sample(recording)
            noted = {"head": recording.head, "draws": recording.draws, **_size(sampled)}
            rows.append({"part": "sampler", "variant": name, "repeat": repeat, **noted, **measured})
        for method in METHODS:
            loss = build_loss(method)
            needed = needed_recording(loss, job.rl)
            with _timed() as measured:
                tokens = update.step(loss)
            noted = {"head": needed.head, "draws": needed.draws, "tokens": tokens, "bytes": 0}
            rows.append({"part": "trainer", "variant": method, "repeat": repeat, **noted, **measured})
    return rows


def _recordings(job: MismatchCostJob, vocabulary: int) -> dict[str, Recording]:
    heads = sorted({8, job.rl.head_size, 128, vocabulary})
    return {
        "none": SAMPLED,
        **{f"top {size}": Recording(head=size) for size in heads if size <= vocabulary},
        f"{job.rl.draws} draws": Recording(draws=job.rl.draws),
    }


def _sample(
    sampler: VLLMSampler, codec: TextCodec, puzzles: Sequence[Puzzle], job: MismatchCostJob, recording: Recording
) -> list[Group]:
    seeds = [
        [derive_seed("cost", index, sample) for sample in range(job.rl.rollouts_per_prompt)]
        for index in range(len(puzzles))
    ]
    return sample_groups(
        sampler,
        codec,
        puzzles,
        seeds,
        temperature=job.rl.temperature,
        max_new_tokens=job.rl.max_new_tokens,
        recording=recording,
    )


class _Trainer:
    """Updates of one policy with learning rate 0 on the same rollouts, each with what its loss needs."""

    def __init__(self, job: MismatchCostJob, codec: TextCodec, model_directory: Path, groups: Sequence[Group]) -> None:
        self._settings = job.rl.model_copy(update={"filter_zero_advantages": False})
        self._model = load_model(model_directory, job.rl.device)
        self._optimizer = build_optimizer(self._model, job.rl.optimizer, 0.0)
        credits, _ = GroupAdvantage(codec).assign(groups)
        self._samples = [
            Sample(
                rollout.prompt_ids,
                rollout.completion.token_ids,
                rollout.completion.logprobs,
                credit.advantages,
                rollout.completion.head,
                rollout.completion.draws,
            )
            for group, group_credit in zip(groups, credits, strict=True)
            for rollout, credit in zip(group.rollouts, group_credit.rollouts, strict=True)
        ]

    def step(self, loss: Loss) -> int:
        """One update; the number of tokens it trained on."""
        needed = needed_recording(loss, self._settings)
        samples = [
            dataclasses.replace(
                sample,
                head=sample.head if needed.head else None,
                draws=sample.draws if needed.draws else None,
            )
            for sample in self._samples
        ]
        update = PolicyUpdate(self._model, self._optimizer, loss, self._settings)
        return int(update.step(samples, 0.0)["trained_tokens"])


@contextlib.contextmanager
def _timed() -> Iterator[dict[str, float]]:
    """Wall and CPU seconds of the block, in a mapping that is filled when it ends."""
    measured: dict[str, float] = {}
    wall, cpu = time.perf_counter(), time.process_time()
    yield measured
    measured.update(seconds=time.perf_counter() - wall, cpu_seconds=time.process_time() - cpu)


def _size(groups: Sequence[Group]) -> dict[str, int]:
    completions = [rollout.completion for group in groups for rollout in group.rollouts]
    noted = [found for completion in completions for found in (completion.head, completion.draws) if found]
    return {
        "tokens": sum(len(completion.token_ids) for completion in completions),
        "bytes": sum(candidates.nbytes for candidates in noted),
    }
