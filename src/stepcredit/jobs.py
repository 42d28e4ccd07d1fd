"""What each job receives: the part of the configuration that its stage reads, and nothing else."""

from __future__ import annotations

from stepcredit.config import Config
from stepcredit.settings.arm import ArmSettings, ShapingSettings
from stepcredit.settings.evaluation import EvaluationJob
from stepcredit.settings.mismatch import EXACT, MismatchSettings
from stepcredit.settings.parity import ParityAuditSettings
from stepcredit.settings.prime_rl import PrimeRLJob
from stepcredit.settings.rl import RLJob
from stepcredit.settings.sampler import SamplerSettings
from stepcredit.settings.scoring import ScoringJob
from stepcredit.settings.sft import SFTJob
from stepcredit.settings.signal import SignalJob
from stepcredit.settings.stability import DriftJob, MismatchCostJob, StabilityJob, StabilitySettings

DRIFT_POSITIONS = 8
"""Positions of each micro-batch at which a run under mismatch measures its drift."""


def sft_job(config: Config) -> SFTJob:
    return SFTJob(model=config.model, sft=config.sft, largest_number=config.data.synthetic.largest_intermediate)


def rl_job(config: Config, arm: str) -> RLJob:
    """An arm of the report. A job does not see how many seeds the arm has, or what question it answers."""
    settings = config.arms[arm].model_copy(update={"seeds": None, "steps": None, "question": None})
    return RLJob(arm=settings, rl=config.rl, sampler=config.sampler, steps=config.trained_steps)


def prime_rl_job(config: Config, job: RLJob) -> PrimeRLJob:
    """The same run with prime-rl.

    It scores over HTTP: a frozen scorer has a server of ours, a moving one is its own server, with our endpoint in it.
    The scores are the same by any kind.
    """
    arm, scorer = job.arm, job.arm.scorer
    if scorer is not None:
        kind = "cached" if scorer.kind in ("tree", "engine") else scorer.kind
        arm = arm.model_copy(update={"scorer": scorer.model_copy(update={"kind": kind})})
    return PrimeRLJob(**dict(job), prime_rl=config.prime_rl).model_copy(update={"arm": arm})


def sweep_job(config: Config) -> RLJob:
    return RLJob(arm=config.arms[config.baseline], rl=config.rl, sampler=config.sampler, steps=[config.sweep.steps])


def parity_job(config: Config, model: str) -> ParityAuditSettings:
    """The audit of sampler against trainer on one of `parity.models`."""
    tokens = config.parity.random_tokens if model == "random" else config.parity.audit.tokens
    return config.parity.audit.model_copy(update={"tokens": tokens})


def random_model_job(config: Config) -> SFTJob:
    """Random weights in the shape that the audit asks for: what SFT would start from."""
    return sft_job(config).model_copy(update={"model": config.parity.random_model})


def ablation_job(config: Config, run: str) -> RLJob:
    """A short run of the baseline arm under one setting of the sampler; in all of them updates land in flight."""
    ablation = config.parity.ablation
    rl = {"temperature": ablation.temperature, "checkpoint_every": ablation.steps}  # its old weights are in no state
    changes = {**ablation.runs[run].model_dump(), "update_after": ablation.update_after}
    return RLJob(
        arm=config.arms[config.baseline],
        rl=config.rl.model_copy(update=rl),
        sampler=config.sampler.model_copy(update=changes),
        steps=[ablation.steps],
    )


def scoring_job(config: Config) -> ScoringJob:
    """Paragraphs as the first shaped arm cuts them."""
    shaping = next((arm.shaping for arm in config.arms.values() if arm.shaping), ShapingSettings())
    return ScoringJob(
        scoring=config.scoring, sampler=config.sampler, rl=config.rl, shaping=shaping, seed=config.seeds[0]
    )


def evaluation_job(config: Config) -> EvaluationJob:
    """Of held-out puzzles."""
    return _evaluation_job(config, config.evaluation.samples)


def validation_job(config: Config) -> EvaluationJob:
    """Of validation puzzles, for the sweep."""
    return _evaluation_job(config, config.sweep.samples)


def signal_job(config: Config) -> SignalJob:
    settings = config.signal.model_copy(update={"arms": []})
    return SignalJob(signal=settings, max_new_tokens=config.rl.max_new_tokens, sampler=config.sampler)


def _evaluation_job(config: Config, samples: int) -> EvaluationJob:
    shared = ("temperature", "max_new_tokens", "max_concurrent", "seed")
    values = {name: getattr(config.evaluation, name) for name in shared}
    return EvaluationJob(samples=samples, sampler=config.sampler, **values)


def stability_runs(settings: StabilitySettings) -> list[tuple[str, str, str]]:
    """(mismatch, method, rewards) of every run; for each rewards first the reference, under an exact sampler."""
    methods = [method.name for method in settings.methods]
    keys: list[tuple[str, str, str]] = []
    for rewards in settings.rewards:
        keys.append((EXACT, methods[0], rewards))
        keys += [(mismatch.name, method, rewards) for mismatch in settings.mismatches for method in methods]
    return keys


def stability_job(config: Config, mismatch: str, method: str, rewards: str) -> StabilityJob:
    """One run of the mismatch experiment; `mismatch` "exact" is the reference."""
    wrong = _mismatch(config, mismatch)
    loss = next(loss for loss in config.stability.methods if loss.name == method)
    rl = RLJob(
        arm=ArmSettings(label="", credit="raw_reward" if rewards == "raw" else "group_advantage"),
        rl=config.rl.model_copy(update={"loss": loss, "drift_positions": DRIFT_POSITIONS}),
        sampler=_with_cache(config.sampler, wrong),
        steps=[config.stability.steps],
        mismatch=wrong,
    )
    return StabilityJob(rl=rl, evaluation=_stability_evaluation(config), puzzles=config.stability.puzzles)


def drift_job(config: Config) -> DriftJob:
    """All mismatches that are there at once: staleness takes training."""
    stability = config.stability
    return DriftJob(
        rl=config.rl,
        sampler=config.sampler,
        mismatches=[_unlabelled(mismatch) for mismatch in stability.mismatches if mismatch.distorts],
        head_sizes=stability.head_sizes,
        rollouts=stability.drift_rollouts,
        evaluation=_stability_evaluation(config),
        puzzles=stability.puzzles,
    )


def mismatch_cost_job(config: Config) -> MismatchCostJob:
    return MismatchCostJob(rl=config.rl, sampler=config.sampler, repeats=config.stability.cost_repeats)


def _mismatch(config: Config, name: str) -> MismatchSettings | None:
    if name == EXACT:
        return None
    return _unlabelled(next(mismatch for mismatch in config.stability.mismatches if mismatch.name == name))


def _unlabelled(mismatch: MismatchSettings) -> MismatchSettings:
    """A job does not see what the report calls the mismatch."""
    return mismatch.model_copy(update={"label": ""})


def _with_cache(sampler: SamplerSettings, mismatch: MismatchSettings | None) -> SamplerSettings:
    return sampler.model_copy(update={"kv_cache_dtype": mismatch.kv_cache}) if mismatch else sampler


def _stability_evaluation(config: Config) -> EvaluationJob:
    return _evaluation_job(config, config.stability.samples)
