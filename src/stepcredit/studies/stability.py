"""Training under a sampler made wrong on purpose, and how good the policy is in the end.

Source: SC, "So what does the paper add?". The policy starts from the SFT checkpoint and trains for a few steps with one
loss while the sampler is rounded, noisy or stale; then its own weights, not the sampler's, answer validation puzzles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from stepcredit.countdown.puzzle import Puzzle
from stepcredit.evaluation.sample import evaluate
from stepcredit.sampling.vllm_engine import VLLMSampler
from stepcredit.settings.stability import StabilityJob
from stepcredit.training.rl import RLRun, RLTrainer


@dataclass(frozen=True)
class StabilityLog:
    """What a run leaves: one row a step, one a phase of a step, one a validation sample."""

    metrics: list[dict[str, Any]]
    timings: list[dict[str, Any]]
    evaluation: list[dict[str, Any]]


@dataclass(frozen=True)
class StabilityRun:
    """One method under one mismatch.

    Attributes:
        job: settings.
        seed: as in `RLRun`; runs with one seed see the same puzzles and the same sampling noise.
        learning_rate: after warm-up.
        model_directory: the SFT checkpoint.
        puzzles: what prompts are drawn from.
        validation: what the final policy is evaluated on.
    """

    job: StabilityJob
    seed: int
    learning_rate: float
    model_directory: Path
    puzzles: Sequence[Puzzle]
    validation: Sequence[Puzzle]


def train_under_mismatch(run: StabilityRun) -> StabilityLog:
    """Train and evaluate; a run takes about a minute, so an interrupted one is computed again from its start."""
    trainer = RLTrainer(RLRun(run.job.rl, run.seed, run.learning_rate, run.model_directory, run.puzzles))
    for step in tqdm(range(1, run.job.rl.steps[-1] + 1), desc="RL", mininterval=5):
        trainer.step(step)
    sampler = _exact_sampler(run, trainer)
    sampler.push_weights(trainer.model)
    rows = evaluate(sampler, trainer.codec, run.validation[: run.job.puzzles], run.job.evaluation)
    return StabilityLog(trainer.metrics, trainer.stopwatch.rows, rows)


def _exact_sampler(run: StabilityRun, trainer: RLTrainer) -> VLLMSampler:
    """The engine of the training, or one more where the KV cache of that one is wrong."""
    exact = run.job.evaluation.sampler
    if run.job.rl.sampler.kv_cache_dtype == exact.kv_cache_dtype:
        return trainer.engine
    return VLLMSampler(run.model_directory, exact, eos_id=trainer.codec.eos_id)
