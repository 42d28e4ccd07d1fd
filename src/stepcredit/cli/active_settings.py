"""What the configuration gives the job behind a manifest: the audit compares it with what the manifest recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel

from stepcredit import jobs
from stepcredit.config import Config
from stepcredit.provenance.manifest import Manifest
from stepcredit.reporting.settings import TablesSettings

Settings = BaseModel | Mapping[str, Any]


def _place(manifest: Manifest) -> list[str]:
    """The parts of the path of an output: `rl/frozen/seed0/...` tells the arm."""
    return next(iter(manifest.outputs)).split("/")


def _train_rl(config: Config, manifest: Manifest) -> Settings:
    place = _place(manifest)
    if place[0] == "sweep":
        job = jobs.sweep_job(config)
        rate = float(place[1].removeprefix("lr"))
    elif place[0] == "parity":
        if place[2] not in config.parity.ablation.runs:
            return {}
        job = jobs.ablation_job(config, place[2])
        rate = manifest.settings["learning_rate"]
    elif place[1] in config.arms:
        job = jobs.rl_job(config, place[1])
        rate = manifest.settings["learning_rate"]  # swept: it comes from an input
    else:
        return {}
    return {**job.model_dump(mode="json"), "learning_rate": rate}


def _train_rl_prime(config: Config, manifest: Manifest) -> Settings:
    place = _place(manifest)
    if place[0] == "sweep":
        job, rate = jobs.sweep_job(config), float(place[1].removeprefix("lr"))
    elif place[1] in config.arms:
        job, rate = jobs.rl_job(config, place[1]), manifest.settings["learning_rate"]
    else:
        return {}
    return {**jobs.prime_rl_job(config, job).model_dump(mode="json"), "learning_rate": rate}


def _evaluate(config: Config, manifest: Manifest) -> Settings:
    return jobs.validation_job(config) if _place(manifest)[0] == "sweep" else jobs.evaluation_job(config)


def _train_mismatch(config: Config, manifest: Manifest) -> Settings:
    _, _, mismatch, method, rewards = _place(manifest)[:5]
    if (mismatch, method, rewards) not in jobs.stability_runs(config.stability):
        return {}
    job = jobs.stability_job(config, mismatch, method, rewards)
    return {**job.model_dump(mode="json"), "learning_rate": manifest.settings["learning_rate"]}


STAGE_SETTINGS: dict[str, Callable[[Config, Manifest], Settings]] = {
    "ingest": lambda config, _: config.data,
    "split": lambda config, _: config.data,
    "train-sft": lambda config, _: jobs.sft_job(config),
    "train-rl": _train_rl,
    "train-sft-prime": lambda config, _: jobs.sft_job(config),
    "train-rl-prime": _train_rl_prime,
    "train-mismatch": _train_mismatch,
    "measure-drift": lambda config, _: jobs.drift_job(config),
    "measure-mismatch-cost": lambda config, _: jobs.mismatch_cost_job(config),
    "select-learning-rate": lambda config, _: {"rates": config.sweep.learning_rates},
    "evaluate": _evaluate,
    "random-model": lambda config, _: jobs.random_model_job(config),
    "parity": lambda config, manifest: jobs.parity_job(config, _place(manifest)[-1].removesuffix(".parquet")),
    "signal": lambda config, _: jobs.signal_job(config),
    "score-benchmark": lambda config, _: jobs.scoring_job(config),
    "score-benchmark-large": lambda config, _: jobs.scoring_job(config),
    "time-scoring-steps": lambda config, _: jobs.scoring_job(config),
    "tables": lambda config, _: TablesSettings.from_config(config),
    "model-cards": lambda config, _: TablesSettings.from_config(config),
    "report": lambda config, _: config,
}
"""Stage to settings, as its command passes them to `record`; a stage that reads none is not listed."""
