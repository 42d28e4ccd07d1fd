"""The RL loop with each scorer: seconds of a step by phase."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from stepcredit.countdown.puzzle import Puzzle
from stepcredit.credit.scorers import server_settings
from stepcredit.modeling.tokenizer import TextCodec
from stepcredit.sampling.vllm_engine import VLLMSampler
from stepcredit.scoring.server import ScorerServer
from stepcredit.settings.arm import ArmSettings, ScorerSettings
from stepcredit.settings.rl import RLJob
from stepcredit.settings.scoring import ScoringJob
from stepcredit.training.rl import RLRun, RLTrainer

SCHEMA = pa.schema(
    {
        "model": pa.string(),
        "scorer": pa.string(),
        "step": pa.int64(),
        "phase": pa.string(),
        "seconds": pa.float64(),
        "cpu_seconds": pa.float64(),
        "scorings": pa.int64(),
        "prompts": pa.int64(),
        "run_prompts": pa.int64(),
    }
)
"""One row a scorer, step and phase. `model`: none, frozen or moving; `prompts` of a step here, `run_prompts` of the
run's own; `scorings` of the step, null without a scorer. `cpu_seconds` are this process's, a server's not counted."""

KINDS: tuple[Literal["naive", "batched", "cached", "engine", "tree"], ...] = (
    "naive",
    "batched",
    "cached",
    "engine",
    "tree",
)
LEARNING_RATE = 1e-4
"""Of the timed steps; their time does not depend on it."""


def time_steps(directory: Path, puzzles: Sequence[Puzzle], job: ScoringJob) -> list[dict[str, Any]]:
    """Rows of `SCHEMA`: each scorer repeats the same first steps from the checkpoint in `directory`.

    One sampler and one server serve all of them, so that starting them is no part of any step.
    """
    rows: list[dict[str, Any]] = []
    with ScorerServer(directory, server_settings(job.sampler), wait=False) as server:
        sampler = VLLMSampler(directory, job.sampler, eos_id=TextCodec.load(directory).eos_id)
        with RLTrainer(_run(directory, puzzles, _arm(job, None), job), sampler=sampler) as trainer:
            trainer.step(1)  # the first step of a process is slow
        server.wait_until_ready()
        for arm in (_arm(job, None), *_arms(job)):
            with RLTrainer(_run(directory, puzzles, arm, job), sampler=sampler, server=server) as trainer:
                for step in range(1, job.scoring.steps + 1):
                    trainer.step(step)
                rows += _rows(trainer, arm, job)
    return rows


def _arms(job: ScoringJob) -> Iterator[ArmSettings]:
    models: tuple[Literal["frozen", "moving"], ...] = ("frozen", "moving")
    for model, kind in itertools.product(models, KINDS):
        if (model, kind) != ("frozen", "engine"):  # the engine holds the policy
            yield _arm(job, ScorerSettings(model=model, kind=kind))


def _arm(job: ScoringJob, scorer: ScorerSettings | None) -> ArmSettings:
    if scorer is None:
        return ArmSettings(label="none", credit="group_advantage")
    return ArmSettings(label=scorer.model, credit="contrastive_potential", scorer=scorer, shaping=job.shaping)


def _run(directory: Path, puzzles: Sequence[Puzzle], arm: ArmSettings, job: ScoringJob) -> RLRun:
    rl = job.rl.model_copy(update={"prompts_per_step": min(job.scoring.prompts_per_step, job.rl.prompts_per_step)})
    settings = RLJob(arm=arm, rl=rl, sampler=job.sampler, steps=[job.scoring.steps])
    return RLRun(settings, seed=job.seed, learning_rate=LEARNING_RATE, model_directory=directory, puzzles=puzzles)


def _rows(trainer: RLTrainer, arm: ArmSettings, job: ScoringJob) -> list[dict[str, Any]]:
    scorings = {row["step"]: row.get("scorings") for row in trainer.metrics}
    shared = {
        "model": arm.scorer.model if arm.scorer else "none",
        "scorer": arm.scorer.kind if arm.scorer else "none",
        "prompts": trainer.run.job.rl.prompts_per_step,
        "run_prompts": job.rl.prompts_per_step,
    }
    return [shared | row | {"scorings": scorings[row["step"]]} for row in trainer.stopwatch.rows]
