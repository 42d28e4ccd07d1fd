"""prime-rl's configurations, written from ours.

Source of the settings: CPAS (SPEC sections 2 and 3). Under prime-rl's names: `group_size` is `rl.rollouts_per_prompt`,
`batch_size` counts rollouts, `max_off_policy_steps` bounds how stale a rollout may be. prime-rl has no key for the
seed of a run: ours orders the puzzles and seeds the sampler. `stepcredit.config` refuses what it could not honour.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit

from stepcredit.provenance.files import atomic_path
from stepcredit.scoring.vllm_plugin import PLUGIN_NAME
from stepcredit.settings.losses import DPPOSettings
from stepcredit.settings.model import OptimizerSettings
from stepcredit.settings.prime_rl import PrimeRLJob
from stepcredit.settings.sft import SFTSettings
from stepcredit.training.prime_rl import ALGORITHM, TASKSET
from stepcredit.training.prime_rl.keys import Kind, check_keys

ORCHESTRATOR_METRICS = "orchestrator.jsonl"
TRAINER_METRICS = "trainer.jsonl"
"""Files of the run directory; prime-rl would write both into one."""

_ATTENTION = "flash_attention_2"
_HOST = "127.0.0.1"
RENDERER = {"name": "custom", "import_path": "stepcredit.training.prime_rl.renderer.PlainRenderer"}


@dataclass(frozen=True)
class RunPlace:
    """Where one run of prime-rl reads and writes.

    Attributes:
        output: directory of the runs.
        name: of this run, a directory in `output`.
        model: a Hugging Face directory.
        data: demonstrations (a directory of Parquet files) or puzzles (one Parquet file).
        port: of the inference server; `port + 1` and the next are the environment's and the scorer's.
    """

    output: Path
    name: str
    model: Path
    data: Path
    port: int = 8000

    @property
    def scorer_port(self) -> int:
        return self.port + 2

    @property
    def directory(self) -> Path:
        return self.output / self.name

    def weights(self, step: int) -> Path:
        """Where prime-rl writes the Hugging Face weights of a step."""
        return self.directory / "weights" / f"step_{step}"


def sft_configuration(settings: SFTSettings, place: RunPlace) -> dict[str, Any]:
    """prime-rl's SFT configuration.

    Raises:
        UnknownKeyError: prime-rl has no such key (an error of this module).
    """
    configuration = {
        "max_steps": settings.steps,
        "output_dir": str(place.output),
        "run": {"name": place.name},
        "clean": True,
        "deployment": {"type": "single_node", "gpus_per_node": 2, "num_train_gpus": 1},
        "model": {"name": str(place.model), "seq_len": settings.max_tokens, "attn": _ATTENTION},
        "renderer": RENDERER,
        "data": {
            "type": "sft",
            "name": str(place.data),
            "seq_len": settings.max_tokens,
            "batch_size": settings.batch_size,
            "micro_batch_size": 1,
            "shuffle": True,
            "seed": settings.seed,
        },
        "optim": _optimizer(settings.optimizer, settings.learning_rate),
        "scheduler": _scheduler(settings.warmup_steps, settings.decay_steps, settings.min_learning_rate),
        "ckpt": {"interval": settings.steps},
    }
    return _checked("sft", configuration)


def rl_configuration(job: PrimeRLJob, seed: int, learning_rate: float, place: RunPlace) -> dict[str, Any]:
    """prime-rl's RL configuration of one arm and one seed.

    Raises:
        UnknownKeyError: prime-rl has no such key (an error of this module).
    """
    rl, sampler, loss = job.rl, job.sampler, job.rl.loss
    if not isinstance(loss, DPPOSettings):
        raise ValueError(f"prime-rl trains with its default loss (dppo_kl), not with {loss.name}")
    configuration = {
        "max_steps": job.steps[-1],
        "seq_len": sampler.max_model_len,
        "output_dir": str(place.output),
        "run": {"name": place.name},
        "clean": True,
        "deployment": {"type": "single_node", "gpus_per_node": 2, "num_train_gpus": 1, "num_infer_gpus": 1},
        "model": {"name": str(place.model)},
        "weight_broadcast": {"type": "filesystem"},
        "ckpt": {"interval": math.gcd(*job.steps)},
        "orchestrator": {
            "batch_size": rl.prompts_per_step * rl.rollouts_per_prompt,
            "group_size": rl.rollouts_per_prompt,
            "max_off_policy_steps": job.prime_rl.max_off_policy_steps,
            "env_server_base_port": place.port + 1,
            "renderer": RENDERER,
            "algo": _algorithm(job, place),
            "monitors": {"file": {"path": ORCHESTRATOR_METRICS}},
            "train": {
                "filter_zero_advantages": rl.filter_zero_advantages,
                "sampling": {"temperature": rl.temperature, "max_completion_tokens": rl.max_new_tokens},
                "source": [{"name": "countdown", "env": _environment(place.data, seed)}],
            },
            "model": {"client": {"base_url": f"http://{_HOST}:{place.port}/v1"}},
        },
        "trainer": {
            "model": {"attn": _ATTENTION},
            "ckpt": {"interval": math.gcd(*job.steps), "weights_only": True, "weights": {"save_sharded": False}},
            "loss": {
                "type": "default",
                "dppo_mask_low": loss.dppo_mask_low,
                "dppo_mask_high": loss.dppo_mask_high,
                "adv_tau": loss.adv_tau,
                "kl_tau": loss.kl_tau,
            },
            "optim": _optimizer(rl.optimizer, learning_rate),
            "scheduler": _scheduler(rl.warmup_steps, 0, 0.0),
            "monitors": {"file": {"path": TRAINER_METRICS}},
        },
        "inference": {
            "router": "None",
            "server": {"host": _HOST, "port": place.port},
            "env_vars": _inference_environment(job),
            "vllm": {
                "dtype": sampler.dtype,
                "max_model_len": sampler.max_model_len,
                "gpu_memory_utilization": sampler.gpu_memory_utilization,
                "seed": seed,
            },
        },
    }
    return _checked("rl", configuration)


def write_toml(configuration: Mapping[str, Any], path: Path) -> None:
    """Write a configuration as TOML, all or nothing."""
    with atomic_path(path) as temporary:
        temporary.write_text(tomlkit.dumps(configuration), encoding="utf-8")


def _checked(kind: Kind, configuration: dict[str, Any]) -> dict[str, Any]:
    check_keys(kind, configuration)
    return configuration


def _algorithm(job: PrimeRLJob, place: RunPlace) -> dict[str, Any]:
    arm = job.arm
    if arm.scorer is None or arm.shaping is None:
        return {"type": "grpo"}
    port = place.scorer_port if arm.scorer.model == "frozen" else place.port
    return {
        "type": ALGORITHM,
        "scorer": {"kind": arm.scorer.kind, "url": f"http://{_HOST}:{port}"},
        "shaping": {key: value for key, value in arm.shaping.model_dump().items() if value is not None}
        | ({"max_paragraph_len": 0} if arm.shaping.max_paragraph_len is None else {}),
    }


def _inference_environment(job: PrimeRLJob) -> dict[str, str]:
    """Our endpoint in prime-rl's inference server, for a moving scorer; a plugin not in the list is not loaded."""
    moving = job.arm.scorer is not None and job.arm.scorer.model == "moving"
    return {"VLLM_PLUGINS": f"prime_rl,{PLUGIN_NAME}"} if moving else {}


def _environment(puzzles: Path, seed: int) -> dict[str, Any]:
    return {
        "taskset": {"id": TASKSET, "path": str(puzzles), "seed": seed},
        "agent": {"harness": {"id": "null"}, "runtime": {"type": "subprocess"}},
    }


def _optimizer(settings: OptimizerSettings, learning_rate: float) -> dict[str, Any]:
    return {
        "type": "adamw",
        "lr": learning_rate,
        "betas1": settings.beta1,
        "betas2": settings.beta2,
        "weight_decay": settings.weight_decay,
        "max_norm": settings.max_grad_norm,
    }


def _scheduler(warmup: int, decay: int, floor: float) -> dict[str, Any]:
    if not warmup and not decay:
        return {"type": "constant"}
    return {"type": "linear", "warmup_steps": warmup, "decay_steps": decay, "min_lr": floor}
