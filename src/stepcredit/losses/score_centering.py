"""Score centering: subtract the sampler's average score, so that a constant reward moves nothing.

In logit space the score of token v is e_v - p, its average under the sampler q - p, and the centered score of
the sampled token e_y - q. Source: SC, part 2; Marek & Ryabinin (2026), section 4 and appendix A.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from stepcredit.losses.batch import (
    Need,
    TokenBatch,
    TokenLoss,
    token_metrics,
    weighted_score_loss,
    weighted_sum,
)
from stepcredit.losses.policy_gradient import check_cap, truncated_weight

SMALLEST_TAIL = 1e-5
"""Probability below which the rounding of float32 log-probabilities hides the trainer's tail."""


def tail_mass(head_logprobs: Tensor) -> Tensor:
    """1 - sum_H p_v, not below 0: [N, k] -> [N] float64 (a float32 sum would lose the tail)."""
    return (1 - head_logprobs.detach().exp().sum(dim=-1, dtype=torch.float64)).clamp(min=0)


def tail_ratio(head_logprobs: Tensor, head_sampler_logprobs: Tensor) -> Tensor:
    """rho = (1 - sum_H q) / (1 - sum_H p): the sampler's mass outside the head, over the trainer's.

    Where the trainer has no tail to speak of (less than SMALLEST_TAIL), rho is 1: as sum_H p_v s_v is then
    zero, any rho gives the same update, and 1 keeps the coefficients bounded and zero at p = q. Source: SC,
    Eq. 7.

    Args:
        head_logprobs, head_sampler_logprobs: [N, k].

    Returns:
        [N], in the dtype of the head, without graph.
    """
    sampler, trainer = tail_mass(head_sampler_logprobs), tail_mass(head_logprobs)
    ratio = torch.where(trainer > SMALLEST_TAIL, sampler / trainer.clamp(min=SMALLEST_TAIL), 1.0)
    return ratio.to(head_logprobs.dtype)


def centering_coefficients(head_logprobs: Tensor, head_sampler_logprobs: Tensor) -> Tensor:
    """c_v = q_v - rho p_v on the head; the tail is the trainer's, rescaled. Source: SC, Eq. 6 and 8.

    Args:
        head_logprobs, head_sampler_logprobs: [N, k].

    Returns:
        [N, k] without graph.
    """
    rho = tail_ratio(head_logprobs, head_sampler_logprobs)[:, None]
    return head_sampler_logprobs.exp() - rho * head_logprobs.detach().exp()


def truncated_centering_coefficients(head_logprobs: Tensor, head_sampler_logprobs: Tensor, cap: float) -> Tensor:
    """c_v = q_v w_v - alpha p_v, w_v = min(p_v / q_v, cap), alpha = rho min(1 / rho, cap): the average
    weighted score.

    Written without the divisions: q_v w_v = min(p_v, cap q_v), alpha = min(1, cap rho). Source: SC, appendix
        C.

    Args:
        head_logprobs, head_sampler_logprobs: [N, k].

    Returns:
        [N, k] without graph.
    """
    p, q = head_logprobs.detach().exp(), head_sampler_logprobs.exp()
    alpha = (cap * tail_ratio(head_logprobs, head_sampler_logprobs)).clamp(max=1)[:, None]
    return torch.minimum(p, cap * q) - alpha * p


def sampled_centering(draw_logprobs: Tensor, weights: Tensor | None = None) -> Tensor:
    """(1 / K) sum_j sg[w_j] log p(v_j) over K draws v_j from the sampler: unbiased for the average (weighted)
    score.

    Unweighted, its logit gradient cancels the dense part of the score: only the sampled token and the draws
        move.
    Source: SC, "Back to the eight logits"; with weights it is the same mean of the terms of the TIS + SC row.

    Args:
        draw_logprobs: [N, K], with graph.
        weights: [N, K] w_j; None for 1.

    Returns:
        [N], with graph.
    """
    coefficients = torch.ones_like(draw_logprobs) if weights is None else weights
    return weighted_sum(coefficients / draw_logprobs.shape[1], draw_logprobs)


@dataclass(frozen=True)
class ScoreCentering:
    """L_t = -A ( log p(y_t) - sum_H sg[q_v - rho p_v] log p_v ). Source: SC, Eq. 6."""

    name: ClassVar[str] = "sc"
    label: ClassVar[str] = "Score centering"
    needs: ClassVar[frozenset[Need]] = frozenset({"head"})

    def __call__(self, batch: TokenBatch) -> TokenLoss:
        head, sampler = _head(batch, self.name)
        centering = weighted_sum(centering_coefficients(head, sampler), head)
        return _centered(batch, torch.ones_like(batch.ratio), centering)


@dataclass(frozen=True)
class SampledScoreCentering:
    """L_t = -A ( log p(y_t) - mean_j log p(v_j) ), v_j drawn from q. SC, "Back to the eight logits"."""

    name: ClassVar[str] = "sc_sampled"
    label: ClassVar[str] = "Score centering, sampled"
    needs: ClassVar[frozenset[Need]] = frozenset({"draws"})

    def __call__(self, batch: TokenBatch) -> TokenLoss:
        centering = sampled_centering(batch.field("draw_logprobs", self.name))
        return _centered(batch, torch.ones_like(batch.ratio), centering)


@dataclass(frozen=True)
class TruncatedScoreCentering:
    """L_t = -A ( sg[min(r_t, cap)] log p(y_t) - sum_H sg[q_v w_v - alpha p_v] log p_v ). SC, appendix C."""

    name: ClassVar[str] = "tis_sc"
    label: ClassVar[str] = "TIS + score centering"
    needs: ClassVar[frozenset[Need]] = frozenset({"head"})
    cap: float = 2.0

    def __post_init__(self) -> None:
        check_cap(self.cap)

    def __call__(self, batch: TokenBatch) -> TokenLoss:
        head, sampler = _head(batch, self.name)
        centering = weighted_sum(truncated_centering_coefficients(head, sampler, self.cap), head)
        return _centered(batch, truncated_weight(batch.ratio, self.cap), centering)


@dataclass(frozen=True)
class SampledTruncatedScoreCentering:
    """L_t = -A ( sg[w(y_t)] log p(y_t) - mean_j sg[w(v_j)] log p(v_j) ), w(v) = min(p_v / q_v, cap).

    The sampled estimate (SC, "Back to the eight logits") of the average that TIS + SC subtracts (SC, appendix
    C).
    Dense: the score's -p cancels only when the weights are equal.
    """

    name: ClassVar[str] = "tis_sc_sampled"
    label: ClassVar[str] = "TIS + score centering, sampled"
    needs: ClassVar[frozenset[Need]] = frozenset({"draws", "draw_sampler_logprobs"})
    cap: float = 2.0

    def __post_init__(self) -> None:
        check_cap(self.cap)

    def __call__(self, batch: TokenBatch) -> TokenLoss:
        draws = batch.field("draw_logprobs", self.name)
        ratios = (draws.detach() - batch.field("draw_sampler_logprobs", self.name)).exp()
        centering = sampled_centering(draws, truncated_weight(ratios, self.cap))
        return _centered(batch, truncated_weight(batch.ratio, self.cap), centering)


def _head(batch: TokenBatch, loss: str) -> tuple[Tensor, Tensor]:
    return batch.field("head_logprobs", loss), batch.field("head_sampler_logprobs", loss)


def _centered(batch: TokenBatch, weight: Tensor, centering: Tensor) -> TokenLoss:
    metrics = token_metrics(batch, weight)
    if batch.head_logprobs is not None and batch.head_sampler_logprobs is not None:
        metrics["sampler_tail"] = tail_mass(batch.head_sampler_logprobs).sum()
        metrics["trainer_tail"] = tail_mass(batch.head_logprobs).sum()
    return TokenLoss(weighted_score_loss(batch, weight, centering), metrics)
