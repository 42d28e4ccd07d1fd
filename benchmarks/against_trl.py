"""CPU seconds of an RL step: ours against TRL's GRPOTrainer, on the same checkpoint and prompts, in turn on one thread.

Needs a finished SFT stage, and TRL beside the environment (it is no dependency of the workflow):

    .venv/bin/pip install --no-deps --target benchmarks/.trl trl==1.16.0 accelerate==1.15.0
    OMP_NUM_THREADS=1 PYTHONPATH=benchmarks/.trl .venv/bin/python benchmarks/against_trl.py --results results

TRL samples with Hugging Face's generate: its own vLLM mode fails at the first weight sync on a CPU. The two alternate
in rounds of separate processes, so that a machine whose speed drifts is fair to both; medians over all steps.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PROMPTS, ROLLOUTS, CAP = 16, 8, 256
KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": "268435456", "MALLOC_MMAP_THRESHOLD_": "268435456"}  # as in the rules


def ours(results: Path, steps: int) -> list[dict[str, float]]:
    """Seconds per phase of our baseline arm, and tokens per second of the engine when it only generates."""
    from stepcredit.settings.arm import ArmSettings
    from stepcredit.settings.rl import RLJob, RLSettings
    from stepcredit.settings.sampler import SamplerSettings
    from stepcredit.tables import read_puzzles
    from stepcredit.training.rl import RLRun, RLTrainer

    job = RLJob(
        arm=ArmSettings(label="baseline", credit="group_advantage"),
        rl=RLSettings(prompts_per_step=PROMPTS, rollouts_per_prompt=ROLLOUTS, max_new_tokens=CAP),
        sampler=SamplerSettings(),
        steps=[steps],
    )
    puzzles = read_puzzles(results / "data/splits/rl.parquet")
    trainer = RLTrainer(RLRun(job, 0, 1.5e-4, results / "sft/model", puzzles))
    rows: list[dict[str, float]] = []
    for step in range(1, steps + 1):
        trainer.step(step)
        phases = {row["phase"]: row["cpu_seconds"] for row in trainer.stopwatch.rows if row["step"] == step}
        tokens = trainer.metrics[-1]["completion_tokens"]
        rows.append(
            {
                **phases,
                "step": sum(phases.values()),
                "tokens": tokens,
                **_engine_alone(trainer, step),
            }
        )
    return rows[1:]


def _engine_alone(trainer: Any, step: int) -> dict[str, float]:
    """Tokens per CPU second of vLLM on the prompts of a step, nothing of ours around it.

    Returns:
        `same`: with a seed for each request and the sampled tokens' log-probs, as in the loop; `bare`: without.
    """
    from vllm import SamplingParams

    prompts = [list(rollout.prompt_ids) for group in trainer._sample(step) for rollout in group.rollouts]
    common = {"temperature": 1.0, "max_tokens": CAP, "stop_token_ids": [trainer.codec.eos_id], "detokenize": False}
    kinds = {
        "same": [SamplingParams(**common, seed=seed, logprobs=0, flat_logprobs=True) for seed in range(len(prompts))],
        "bare": [SamplingParams(**common) for _ in prompts],
    }
    speeds = {}
    for kind, parameters in kinds.items():
        requests = [{"prompt_token_ids": prompt} for prompt in prompts]
        started = time.process_time()
        outputs = trainer.engine.engine.generate(requests, parameters, use_tqdm=False)
        speeds[kind] = sum(len(output.outputs[0].token_ids) for output in outputs) / (time.process_time() - started)
    return speeds


def theirs(results: Path, steps: int) -> list[dict[str, float]]:
    """Seconds of TRL's steps."""
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    from stepcredit.countdown.prompt import prompt_text
    from stepcredit.countdown.puzzle import Puzzle
    from stepcredit.countdown.verifier import grade
    from stepcredit.seeds import batch_indices
    from stepcredit.tables import read_puzzles

    puzzles = read_puzzles(results / "data/splits/rl.parquet")
    order = [i for step in range(steps) for i in batch_indices(len(puzzles), PROMPTS, step, 0, "prompts")]
    tokenizer = AutoTokenizer.from_pretrained(results / "sft/model")
    tokenizer.padding_side = "left"
    data = Dataset.from_list(
        [
            {
                "prompt": f"{tokenizer.bos_token} {prompt_text(puzzles[i])}",
                "nums": list(puzzles[i].nums),
                "target": puzzles[i].target,
            }
            for i in order
        ]
    )
    rows: list[dict[str, float]] = []
    tokens: list[int] = []

    def reward(
        completions: list[str], nums: list[list[int]], target: list[int], completion_ids: Any, **_: Any
    ) -> list[float]:
        tokens.append(sum(map(len, completion_ids)))
        return [grade(c, Puzzle(tuple(n), t)).reward for c, n, t in zip(completions, nums, target, strict=True)]

    class Timer(TrainerCallback):
        def on_step_begin(self, *_: Any, **__: Any) -> None:
            self.started = time.process_time()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            rows.append({"step": time.process_time() - self.started, "tokens": tokens[-1]})

    with tempfile.TemporaryDirectory() as directory:
        config = GRPOConfig(
            output_dir=directory,
            max_steps=steps,
            learning_rate=1.5e-4,
            per_device_train_batch_size=32,
            gradient_accumulation_steps=PROMPTS * ROLLOUTS // 32,
            num_generations=ROLLOUTS,
            max_completion_length=CAP,
            temperature=1.0,
            beta=0.0,
            scale_rewards="none",
            use_cpu=True,
            bf16=False,
            shuffle_dataset=False,
            report_to="none",
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
        )
        model = AutoModelForCausalLM.from_pretrained(results / "sft/model", dtype="float32", use_safetensors=True)
        GRPOTrainer(
            model, reward, args=config, train_dataset=data, processing_class=tokenizer, callbacks=[Timer()]
        ).train()
    return rows[1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--steps", type=int, default=6, help="steps a round, the first of which does not count")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--side", choices=["ours", "theirs"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side:
        import torch

        torch.set_num_threads(1)
        rows = {"ours": ours, "theirs": theirs}[arguments.side](arguments.results, arguments.steps)
        print("ROWS " + json.dumps(rows))
        return
    collected: dict[str, list[dict[str, float]]] = {"ours": [], "theirs": []}
    for _ in range(arguments.rounds):
        for side, rows in collected.items():
            rows.extend(_run(side, arguments))
    _print(collected)


def _run(side: str, arguments: argparse.Namespace) -> list[dict[str, float]]:
    command = [
        sys.executable,
        __file__,
        "--side",
        side,
        "--results",
        str(arguments.results),
        "--steps",
        str(arguments.steps),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **KEEP_MEMORY}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("ROWS ")]
    if done.returncode or not lines:
        sys.exit(f"{side} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    rows: list[dict[str, float]] = json.loads(lines[0][5:])
    return rows


def _print(collected: dict[str, list[dict[str, float]]]) -> None:
    def median(side: str, key: str) -> float:
        return statistics.median(row[key] for row in collected[side])

    print(f"medians over {len(collected['ours'])} steps of {PROMPTS} x {ROLLOUTS} rollouts, CPU seconds, one thread")
    for key in ("generate", "score", "train", "push", "step"):
        print(f"  ours  {key:10s} {median('ours', key):.3f}")
    print(f"  TRL   step       {median('theirs', 'step'):.3f}")
    print(f"  tokens a step: ours {median('ours', 'tokens'):.0f}, TRL {median('theirs', 'tokens'):.0f}")
    print(f"  ours / TRL, step: {median('ours', 'step') / median('theirs', 'step'):.3f}")
    speed = statistics.median(row["tokens"] / row["generate"] for row in collected["ours"])
    print(f"  generation: {speed:.0f} tokens/s in the loop")
    for kind, what in (("same", "the same requests and nothing else"), ("bare", "without seeds and log-probs")):
        alone = median("ours", kind)
        print(f"    engine alone, {what}: {alone:.0f} tokens/s, of which the loop has {speed / alone:.2f}")


if __name__ == "__main__":
    main()
