"""Losses that weigh the sampled token and touch no other: REINFORCE and the importance-sampling family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from stepcredit.losses.batch import Need, TokenBatch, TokenLoss, token_metrics, weighted_score_loss


def truncated_weight(ratio: Tensor, cap: float) -> Tensor:
    """w = min(r, cap). Source: SC, "Doesn't importance sampling already fix this?"."""
    return ratio.clamp(max=cap)


def masked_weight(ratio: Tensor, low: float, high: float) -> Tensor:
    """w = r where low <= r <= high, else 0. Source: SC, appendix C (MIS)."""
    return torch.where((ratio >= low) & (ratio <= high), ratio, 0.0)


def ppo_clip_weight(ratio: Tensor, advantages: Tensor, epsilon_low: float, epsilon_high: float) -> Tensor:
    """w = r, or 0 where the clip binds: r > 1 + epsilon_high with A > 0, r < 1 - epsilon_low with A < 0.

    The gradient of -min(r A, clip(r, 1 - epsilon_low, 1 + epsilon_high) A) is -A w grad log p, since grad r =
    r grad log p. Source: SC, appendix C ("PPO / GRPO clip").
    """
    binds = torch.where(advantages > 0, ratio > 1 + epsilon_high, ratio < 1 - epsilon_low)
    return torch.where(binds, 0.0, ratio)


def dppo_keep(batch: TokenBatch, mask_low: float, mask_high: float) -> Tensor:
    """[N] bool: which tokens keep their policy-gradient term.

    DPPO compares probabilities, not ratios. A token with A > 0 is dropped when p - q > mask_high, one with A
    <= 0 when p - q < -mask_low: it has already moved the way its advantage pushes. Source: SPEC section 3
    (prime-rl's default).
    """
    difference = batch.logprobs.detach().exp() - batch.sampler_logprobs.exp()
    return ~torch.where(batch.advantages > 0, difference > mask_high, difference < -mask_low)


@dataclass(frozen=True)
class Reinforce:
    """L_t = -A log p(y_t): the plain policy gradient, which drifts towards the sampler. SC, appendix C."""

    name: ClassVar[str] = "reinforce"
    label: ClassVar[str] = "Policy gradient"
    needs: ClassVar[frozenset[Need]] = frozenset()

    def __call__(self, batch: TokenBatch) -> TokenLoss:
        return _weighted(batch, torch.ones_like(batch.ratio))


@dataclass(frozen=True)
class ImportanceSampling:
    """L_t = -A sg[r_t] log p(y_t): no drift, unbounded variance. Source: SC, appendix C ("naive IS")."""

    name: ClassVar[str] = "is"
    label: ClassVar[str] = "Importance sampling"
    needs: ClassVar[frozenset[Need]] = frozenset()

    def __call__(self, batch: TokenBatch) -> TokenLoss:
        return _weighted(batch, batch.ratio)


@dataclass(frozen=True)
class TruncatedImportanceSampling:
    """L_t = -A sg[min(r_t, cap)] log p(y_t). Source: SC, appendix C (TIS, cap 2)."""

    name: ClassVar[str] = "tis"
    label: ClassVar[str] = "TIS"
    needs: ClassVar[frozenset[Need]] = frozenset()
    cap: float = 2.0

    def __post_init__(self) -> None:
        check_cap(self.cap)

    def __call__(self, batch: TokenBatch) -> TokenLoss:
        return _weighted(batch, truncated_weight(batch.ratio, self.cap))


@dataclass(frozen=True)
class MaskedImportanceSampling:
    """L_t = -A sg[r_t] log p(y_t) where low <= r_t <= high, else 0. SC, appendix C (MIS, 0.5 to 5)."""

    name: ClassVar[str] = "mis"
    label: ClassVar[str] = "MIS"
    needs: ClassVar[frozenset[Need]] = frozenset()
    low: float = 0.5
    high: float = 5.0

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high:
            raise ValueError(f"mis needs 0 <= low <= high; got low {self.low}, high {self.high}")

    def __call__(self, batch: TokenBatch) -> TokenLoss:
        return _weighted(batch, masked_weight(batch.ratio, self.low, self.high))


@dataclass(frozen=True)
class PPOClip:
    """L_t = -A sg[w_t] log p(y_t), w_t = r_t, or 0 where the clip binds. Source: SC, appendix C."""

    name: ClassVar[str] = "ppo_clip"
    label: ClassVar[str] = "PPO clip"
    needs: ClassVar[frozenset[Need]] = frozenset()
    epsilon_low: float = 0.2
    epsilon_high: float = 0.2

    def __post_init__(self) -> None:
        if self.epsilon_low < 0 or self.epsilon_high < 0:
            raise ValueError(
                f"ppo_clip needs epsilons of at least 0; got epsilon_low {self.epsilon_low},"
                f" epsilon_high {self.epsilon_high}"
            )

    def __call__(self, batch: TokenBatch) -> TokenLoss:
        return _weighted(batch, ppo_clip_weight(batch.ratio, batch.advantages, self.epsilon_low, self.epsilon_high))


@dataclass(frozen=True)
class DPPOWithKL:
    """prime-rl's default loss; the gradient goes through the ratio.

        L_t = -keep_t adv_tau A_t r_t + kl_tau (log p(y_t) - log q(y_t))^2

    The squared-log term stays on all tokens. Source: SPEC section 3; CPAS, "loss" (its min(ratio, delta) is
    the documentation's form, this is the code's at the pinned commit).
    """

    name: ClassVar[str] = "dppo_kl"
    label: ClassVar[str] = "DPPO + KL"
    needs: ClassVar[frozenset[Need]] = frozenset()
    dppo_mask_low: float = 0.2
    dppo_mask_high: float = 0.2
    adv_tau: float = 1.0
    kl_tau: float = 1e-3

    def __call__(self, batch: TokenBatch) -> TokenLoss:
        keep = dppo_keep(batch, self.dppo_mask_low, self.dppo_mask_high)
        ratio = batch.log_ratio.exp()
        policy_gradient = keep * self.adv_tau * batch.advantages * ratio
        per_token = -policy_gradient + self.kl_tau * batch.log_ratio.square()
        return TokenLoss(per_token, token_metrics(batch, weight=keep * self.adv_tau * ratio))


def check_cap(cap: float) -> None:
    """Raises ValueError unless `cap`, the largest importance weight, is positive."""
    if not cap > 0:
        raise ValueError(f"cap, the largest importance weight, must be positive; got {cap}")


def _weighted(batch: TokenBatch, weight: Tensor) -> TokenLoss:
    return TokenLoss(weighted_score_loss(batch, weight), token_metrics(batch, weight))
