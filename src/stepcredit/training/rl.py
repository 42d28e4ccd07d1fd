"""The RL loop: sample groups, assign credit, update the policy, push its weights to the sampler.

Source: CPAS, "RL baseline" and "Contrastive potential advantage shaping". Deviations: (1) one optimiser step a batch,
on rollouts of the very weights that are updated, so that the importance ratio is 1 up to rounding, and the DPPO mask
and the KL term of the loss do nothing unless the sampler is stale or wrong; (2) AdamW without weight decay, a linear
warm-up, then a constant learning rate.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tqdm import tqdm
from transformers import PreTrainedModel

from stepcredit.countdown.puzzle import Puzzle
from stepcredit.credit.moving_average import MovingAverage
from stepcredit.credit.registry import open_credit
from stepcredit.credit.scorers import ScorerSources
from stepcredit.losses import build_loss
from stepcredit.losses.agreement import outside_band
from stepcredit.modeling.model import load_model, save_model
from stepcredit.modeling.tokenizer import TextCodec
from stepcredit.rollouts import Group
from stepcredit.sampling.continuations import Continuations
from stepcredit.sampling.groups import sample_groups
from stepcredit.sampling.in_flight import InFlightSampler
from stepcredit.sampling.mismatch import MismatchedSampler
from stepcredit.sampling.sampler import Sampler
from stepcredit.sampling.vllm_engine import VLLMSampler
from stepcredit.scoring.server import ScorerServer
from stepcredit.seeds import batch_indices, derive_seed
from stepcredit.settings.rl import RLJob
from stepcredit.tables import write_rows
from stepcredit.training.checkpoint import Progress, StateDirectory, link_tree
from stepcredit.training.optimizer import build_optimizer, warmup_schedule
from stepcredit.training.policy_update import PolicyUpdate
from stepcredit.training.records import ROLLOUTS_SCHEMA, rollout_metrics, rollout_rows
from stepcredit.training.stopwatch import Stopwatch
from stepcredit.training.token_batch import Sample, needed_recording

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class RLRun:
    """What one run trains on.

    Attributes:
        job: settings.
        seed: of the order of the puzzles and of the sampling; two arms with one seed see the same of both.
        learning_rate: after warm-up.
        model_directory: the SFT checkpoint: the policy's first weights, and the frozen scorer.
        puzzles: what prompts are drawn from.
    """

    job: RLJob
    seed: int
    learning_rate: float
    model_directory: Path
    puzzles: Sequence[Puzzle]


def train_rl(run: RLRun, state_directory: Path, identity: Mapping[str, Any], out_dir: Path) -> StateDirectory:
    """Train to the last of the job's steps, resuming from the newest state, and write the outputs.

    Args:
        identity: what the bytes depend on beside the run's own settings (hashes of inputs, digest of code).
        out_dir: receives `checkpoints/step{n}`, `metrics.parquet`, `timings.parquet`, `rollouts.parquet`.

    Returns:
        the state directory, to be marked as finished once everything is recorded.
    """
    settings = run.job.model_dump(mode="json", exclude={"steps"})
    identity = {**identity, "settings": settings, "seed": run.seed, "learning_rate": run.learning_rate}
    states = StateDirectory(state_directory, identity, goal=run.job.steps)
    last = run.job.steps[-1]
    with RLTrainer(run) as trainer:
        trainer.resume(states)
        for step in tqdm(range(trainer.done + 1, last + 1), desc="RL", initial=trainer.done, total=last, mininterval=5):
            trainer.step(step)
            trainer.keep(states, run.job.steps)
    for step in run.job.steps:
        link_tree(states.model_directory(step), out_dir / "checkpoints" / f"step{step}")
    write_rows(out_dir / "metrics.parquet", trainer.metrics)
    write_rows(out_dir / "timings.parquet", trainer.stopwatch.rows)
    write_rows(out_dir / "rollouts.parquet", trainer.rollouts, ROLLOUTS_SCHEMA)
    return states


class RLTrainer:
    """Policy, sampler, credit scheme and optimiser of one run, one step at a time.

    A context manager: a scorer's server ends with the block (and with this process, however that ends).
    """

    def __init__(self, run: RLRun, *, sampler: VLLMSampler | None = None, server: ScorerServer | None = None) -> None:
        """
        Args:
            sampler: one of this model to take instead of starting one.
            server: a scorer server of this model to take where the arm's scorer needs one.

        Raises:
            ServerError: the scorer's server did not start.
        """
        self.run = run
        self.done = 0
        self.metrics: list[dict[str, Any]] = []
        self.rollouts: list[dict[str, Any]] = []
        self.stopwatch = Stopwatch()
        rl = run.job.rl
        self.codec = TextCodec.load(run.model_directory)
        self.model = load_model(run.model_directory, rl.device)
        self._optimizer = build_optimizer(self.model, rl.optimizer, run.learning_rate)
        loss = build_loss(**rl.loss.model_dump())
        self._update = PolicyUpdate(self.model, self._optimizer, loss, rl)
        self._recording = needed_recording(loss, rl)
        self.engine = sampler or VLLMSampler(run.model_directory, run.job.sampler, eos_id=self.codec.eos_id)
        self._sampler = self._build_sampler()
        self._sampler.push_weights(self.model)
        self._average = self._build_average()
        self._open = ExitStack()
        self._credit = self._open.enter_context(
            open_credit(run.job.arm, self.codec, self._scorer_sources(server), self._continuations())
        )

    def _build_average(self) -> MovingAverage | None:
        scorer = self.run.job.arm.scorer
        if scorer is None or scorer.model != "average":
            return None
        start = load_model(self.run.model_directory, self.run.job.rl.device).requires_grad_(False)
        return MovingAverage(start, self.model, scorer.decay)

    def _scorer_sources(self, server: ScorerServer | None) -> ScorerSources:
        average = self._average.model if self._average else None
        run = self.run
        return ScorerSources(self.model, run.model_directory, self.engine.engine, run.job.sampler, server, average)

    def _continuations(self) -> Continuations:
        rl, shaping = self.run.job.rl, self.run.job.arm.shaping
        return Continuations(
            self._sampler,
            self.codec,
            samples=shaping.continuations if shaping else 1,
            temperature=rl.temperature,
            max_new_tokens=rl.max_new_tokens,
            seed=self.run.seed,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, traceback)

    def _build_sampler(self) -> Sampler:
        """The engine, made wrong or updated in flight where the job says so."""
        mismatch, in_flight = self.run.job.mismatch, self.run.job.sampler.update_after
        sampler: Sampler = MismatchedSampler(self.engine, mismatch, self.run.seed) if mismatch else self.engine
        return sampler if in_flight is None else InFlightSampler(sampler, in_flight)

    def step(self, step: int) -> None:
        """One RL step; `step` counts from 1."""
        rl = self.run.job.rl
        with self.stopwatch.phase(step, "generate"):
            groups = self._sample(step)
        with self.stopwatch.phase(step, "score"):
            credits, credit_metrics = self._credit.assign(groups)
        samples = [
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
        with self.stopwatch.phase(step, "train"):
            rate = warmup_schedule(step, peak=self.run.learning_rate, warmup=rl.warmup_steps)
            update_metrics = self._update.step(samples, rate)
            if self._average:
                self._average.update()
        with self.stopwatch.phase(step, "push"):
            self._sampler.push_weights(self.model)
        sampled = rollout_metrics(groups, self.codec, rl.max_new_tokens)
        outside = self._outside_band(step, update_metrics)
        self.metrics.append({"step": step, **sampled, **update_metrics, "outside_band": outside, **credit_metrics})
        if step == 1 or step % rl.keep_rollouts_every == 0:
            self.rollouts.extend(rollout_rows(step, groups, credits))
        self.done = step

    def _outside_band(self, step: int, metrics: Mapping[str, float]) -> bool:
        """Whether sampler and trainer differ by more than rounding explains; warns in the log where they do."""
        dtype = self.run.job.sampler.dtype
        found = outside_band(metrics, "float32" if dtype == "auto" else dtype)
        if found:
            _LOG.warning("step %d: sampler and trainer differ by more than rounding: %s", step, ", ".join(found))
        return bool(found)

    def _sample(self, step: int) -> list[Group]:
        rl, seed = self.run.job.rl, self.run.seed
        indices = batch_indices(len(self.run.puzzles), rl.prompts_per_step, step - 1, seed, "prompts")
        seeds = [
            [derive_seed(seed, "rollout", step, prompt, sample) for sample in range(rl.rollouts_per_prompt)]
            for prompt in range(len(indices))
        ]
        return sample_groups(
            self._sampler,
            self.codec,
            [self.run.puzzles[index] for index in indices],
            seeds,
            temperature=rl.temperature,
            max_new_tokens=rl.max_new_tokens,
            recording=self._recording,
        )

    def keep(self, states: StateDirectory, steps: Sequence[int]) -> None:
        """Save the model where this step is one of `steps`, and a state to resume from there and every so often."""
        wanted = self.done in steps
        if wanted:
            save_model(self.model, self.codec, states.model_directory(self.done))
        if wanted or self.done % self.run.job.rl.checkpoint_every == 0:
            rows = {"metrics": self.metrics, "timings": self.stopwatch.rows, "rollouts": self.rollouts}
            states.save(self.model, self._optimizer, Progress(self.done, rows), self._others())

    def _others(self) -> dict[str, PreTrainedModel]:
        """Models beside the policy that change in training."""
        return {"average": self._average.model} if self._average else {}

    def resume(self, states: StateDirectory) -> None:
        """Continue from the newest state, if there is one."""
        progress = states.resume(self.model, self._optimizer, self._others())
        if progress is None:
            return
        self.done = progress.step
        self.metrics = progress.rows["metrics"]
        self.stopwatch.rows = progress.rows["timings"]
        self.rollouts = progress.rows["rollouts"]
        self._sampler.push_weights(self.model)
