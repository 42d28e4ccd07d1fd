"""How well sampler and trainer agree on the tokens that were sampled, and the rule that judges it.

Every threshold is in this file. A trainer that divides by the sampler's probabilities must know three things apart: are
the numbers the same up to rounding, does the sampler report (or sample) another distribution, is it another model.
Source: PARITY, "Failure modes" and "V1 backend fixes".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Verdict = Literal["exact", "numerical noise", "biased", "broken"]

CLIP = 0.2
"""A token counts as clipped where |ratio - 1| exceeds this."""
FAR = 0.1
"""A token counts as far off where |log ratio| exceeds this (nats)."""

EXACT_WORST = 1e-4
"""`exact`: no token is off by more (nats)."""
NOISE_SPACINGS = 4.0
"""`numerical noise`: mean |log ratio| up to so many spacings (machine epsilon) of the coarsest number format in use."""
NOISE_FLOOR = 1e-5
"""The same, at least (nats): float32 sums of a deep model."""
NOISE_CLIPPED = 0.02
"""Noise clips no more than this share of the tokens, whatever the format."""
RATIO_DEVIATIONS = 5.0
"""E_q[p / q] is 1 for any sampler that reports the q it draws from: so many standard errors off, and it does not."""
BROKEN_MEAN = 0.25
"""`broken`: mean |log ratio| above this (nats), or a token in a hundred that one side calls impossible."""
BROKEN_IMPOSSIBLE = 0.01

SPACING = {
    "float32": torch.finfo(torch.float32).eps,
    "float16": torch.finfo(torch.float16).eps,
    "bfloat16": torch.finfo(torch.bfloat16).eps,
    "fp8_e4m3": torch.finfo(torch.float8_e4m3fn).eps,
    "fp8_e5m2": torch.finfo(torch.float8_e5m2).eps,
}
"""Machine epsilon of each number format."""

RULE = (
    f"exact: worst |log ratio| up to {EXACT_WORST:g}. numerical noise: mean |log ratio| up to {NOISE_SPACINGS:g} times"
    f" the machine epsilon of the coarsest format in use (at least {NOISE_FLOOR:g}), a mean ratio within"
    f" {RATIO_DEVIATIONS:g} standard errors of 1, and at most {NOISE_CLIPPED:.0%} of the tokens clipped. broken: mean"
    f" |log ratio| above {BROKEN_MEAN:g}, or over {BROKEN_IMPOSSIBLE:.0%} of the tokens impossible for one side."
    " biased: all else."
)


@dataclass(frozen=True)
class Agreement:
    """Sampler's q against trainer's p over N sampled tokens; ratio = p / q, log-probs in nats.

    Attributes:
        tokens: N.
        mean_abs, worst: of |log ratio|, over the tokens that both sides hold possible.
        mean_abs_error: standard error of `mean_abs` over tokens.
        mean_ratio, ratio_error: mean of the ratio, and its standard error over tokens.
        kl: mean of ratio - log ratio - 1 (k3, an estimate of KL(q, p) that is never negative).
        clipped: share of tokens with |ratio - 1| > `CLIP`.
        effective_sample_size: (sum r)^2 / (N sum r^2).
        entropy_gap: the sampler's entropy as its own log-probs tell it (-mean log q) minus the trainer's exact one;
            NaN where the trainer's was not given. It has sampling error.
        far: share of tokens with |log ratio| > `FAR`.
        impossible: share of tokens to which one side gives no finite log-prob.
    """

    tokens: int
    mean_abs: float
    mean_abs_error: float
    worst: float
    mean_ratio: float
    ratio_error: float
    kl: float
    clipped: float
    effective_sample_size: float
    entropy_gap: float
    far: float
    impossible: float

    @property
    def ratio_distance(self) -> float:
        """|mean ratio - 1|."""
        return abs(self.mean_ratio - 1)


def measure_agreement(logprobs: Tensor, sampler_logprobs: Tensor, entropies: Tensor | None = None) -> Agreement:
    """Metrics of the tokens of a batch.

    Args:
        logprobs: [N] trainer's log p(y_t), of the distribution that the sampler drew from (after temperature).
        sampler_logprobs: [N] sampler's log q(y_t).
        entropies: [N] trainer's exact entropy at each token.

    Raises:
        ValueError: there are no tokens, or the shapes differ.
    """
    if logprobs.shape != sampler_logprobs.shape or logprobs.dim() != 1 or not len(logprobs):
        raise ValueError(
            f"log-probs must be [N] alike, N at least 1; got {list(logprobs.shape)} and {list(sampler_logprobs.shape)}"
        )
    p, q = logprobs.double(), sampler_logprobs.double()
    possible = torch.isfinite(p) & torch.isfinite(q)
    known = (p - q)[possible]
    impossible = 1 - len(known) / len(p)
    if not len(known):
        nan = math.nan
        return Agreement(len(p), nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, 1.0)
    ratio = known.exp()
    gap = math.nan if entropies is None else (-q[possible].mean() - entropies.double()[possible].mean()).item()
    return Agreement(
        tokens=len(p),
        mean_abs=known.abs().mean().item(),
        mean_abs_error=_standard_error(known.abs()),
        worst=known.abs().max().item(),
        mean_ratio=ratio.mean().item(),
        ratio_error=_standard_error(ratio),
        kl=(ratio - known - 1).mean().item(),
        clipped=((ratio - 1).abs() > CLIP).double().mean().item(),
        effective_sample_size=effective_sample_size(ratio),
        entropy_gap=gap,
        far=(known.abs() > FAR).double().mean().item(),
        impossible=impossible,
    )


def _standard_error(values: Tensor) -> float:
    return values.std().item() / math.sqrt(len(values)) if len(values) > 1 else math.inf


def effective_sample_size(weights: Tensor) -> float:
    """(sum w)^2 / (N sum w^2) of N weights: 1 where all are alike, 1 / N where one carries all."""
    return (weights.sum() ** 2 / (len(weights) * weights.square().sum())).item()


def noise_limit(formats: tuple[str, ...]) -> float:
    """Largest mean |log ratio| that rounding explains, for the number formats in use (keys of `SPACING`)."""
    return max(NOISE_FLOOR, *(NOISE_SPACINGS * SPACING[name] for name in formats))


def judge(agreement: Agreement, formats: tuple[str, ...] = ("float32",)) -> Verdict:
    """The verdict of `RULE`.

    Args:
        formats: number formats that sampler, trainer and KV cache use.
    """
    if not math.isfinite(agreement.mean_abs) or agreement.impossible > BROKEN_IMPOSSIBLE:
        return "broken"
    if agreement.mean_abs > BROKEN_MEAN:
        return "broken"
    if agreement.worst <= EXACT_WORST and not agreement.impossible:
        return "exact"
    noise = (
        agreement.mean_abs <= noise_limit(formats)
        and agreement.ratio_distance <= RATIO_DEVIATIONS * agreement.ratio_error
        and agreement.clipped <= NOISE_CLIPPED
        and not agreement.impossible
    )
    return "numerical noise" if noise else "biased"


def flagged(verdict: str) -> bool:
    """Whether a verdict says that something must be mended."""
    return verdict in ("biased", "broken")


# -- a training step ----------------------------------------------------------------------------------------------

STEP_METRICS = {
    "mean_ratio": "mean_ratio",
    "mismatch_kl": "kl",
    "mean_log_ratio": "mean_abs",
    "max_log_ratio": "worst",
    "clipped": "clipped",
    "far": "far",
    "impossible": "impossible",
    "effective_sample_size": "effective_sample_size",
    "entropy_gap": "entropy_gap",
}
"""What a training step logs, under its name there: the field of `Agreement` that it is."""


def step_metrics(agreement: Agreement) -> dict[str, float]:
    """The metrics of a training step, by the names of `STEP_METRICS`."""
    return {name: getattr(agreement, field) for name, field in STEP_METRICS.items()}


def noise_band(sampler_format: str) -> dict[str, float]:
    """How far the metrics of a training step may be off while rounding explains it.

    Holds for one update a batch on rollouts of the current weights; a sampler that is stale on purpose leaves the band.

    Args:
        sampler_format: number format of the sampler (a key of `SPACING`).

    Returns:
        limits of `mismatch_kl`, `mean_log_ratio`, `max_log_ratio`, `clipped`, `impossible`, and of |mean_ratio - 1|
        under `mean_ratio`.
    """
    limit = noise_limit((sampler_format,))
    return {
        "mean_ratio": limit,
        "mismatch_kl": limit**2,
        "mean_log_ratio": limit,
        "max_log_ratio": 100 * limit,
        "clipped": NOISE_CLIPPED,
        "impossible": 0.0,
    }


def outside_band(metrics: Mapping[str, float], sampler_format: str) -> list[str]:
    """What of a step's metrics is outside the noise band, in words; empty where nothing was trained."""
    found = []
    for name, limit in noise_band(sampler_format).items():
        value = metrics[name]
        distance = abs(value - 1) if name == "mean_ratio" else value
        if distance > limit:
            what = "|mean_ratio - 1|" if name == "mean_ratio" else name
            found.append(f"{what} {distance:.2g} > {limit:.2g}")
    return found
