"""What a loss does on average: its exact expected update at one position, over all the sampler may draw."""

from __future__ import annotations

import torch
from torch import Tensor

from stepcredit.losses.batch import Loss, TokenBatch


def expected_update(loss: Loss, p: Tensor, q: Tensor, reward: Tensor | float, head_size: int | None = None) -> Tensor:
    """E over y ~ q of -dL/dz at one position with logits z, p = softmax(z), by enumerating the vocabulary.

    A loss that centers with K draws is linear in each draw's term, so its expectation over K draws is the one
    over a single draw, which is enumerated too: with every token, or, where all tokens earn the same and so the
    terms of token and draw do not meet, beside the token that it is equal to.
    Source: SC, Eq. 3 (the update, drift and signal together).

    Args:
        loss: any loss.
        p: [V] trainer's probabilities, all positive.
        q: [V] sampler's probabilities.
        reward: [V] advantage of each token, or one for all.
        head_size: tokens in the sampler's top-k, for the losses that need it; None: the whole vocabulary.

    Returns:
        [V] float64.

    Raises:
        ValueError: p or q is not a distribution, or p has a zero.
    """
    p, q = _distribution(p, "p"), _distribution(q, "q")
    if p.shape != q.shape or not bool((p > 0).all()):
        raise ValueError("p must be positive everywhere, and of the length of q")
    logits = p.log().requires_grad_()
    logprobs, sampler_logprobs = logits.log_softmax(dim=0), q.log()
    support = q.nonzero().squeeze(1)
    rewards = torch.as_tensor(reward, dtype=torch.float64)
    tokens, draws = support, None
    if "draws" in loss.needs:
        tokens, draws = _pairs(support) if rewards.dim() else (support, support[:, None])
    head = q.topk(head_size or len(q)).indices.expand(len(tokens), -1) if "head" in loss.needs else None
    batch = TokenBatch(
        logprobs=logprobs[tokens],
        sampler_logprobs=sampler_logprobs[tokens],
        advantages=rewards.expand(len(q))[tokens],
        head_logprobs=None if head is None else logprobs[head],
        head_sampler_logprobs=None if head is None else sampler_logprobs[head],
        draw_logprobs=None if draws is None else logprobs[draws],
        draw_sampler_logprobs=None if draws is None else sampler_logprobs[draws],
    )
    probability = q[tokens] if draws is None or not rewards.dim() else q[tokens] * q[draws[:, 0]]
    (gradient,) = torch.autograd.grad((probability * loss(batch).per_token).sum(), logits)
    return -gradient


def on_policy_update(p: Tensor, reward: Tensor | float) -> Tensor:
    """sum_v p_v R_v (e_v - p) = p * (R - p . R), [V] float64: the target, free of mismatch."""
    p = _distribution(p, "p")
    rewards = torch.as_tensor(reward, dtype=torch.float64).expand(len(p))
    return p * (rewards - (p * rewards).sum())


def _pairs(support: Tensor) -> tuple[Tensor, Tensor]:
    """Every (token, draw): [S * S] and [S * S, 1]."""
    return support.repeat_interleave(len(support)), support.repeat(len(support))[:, None]


def _distribution(values: Tensor, name: str) -> Tensor:
    values = values.detach().to(torch.float64)
    total = float(values.sum())
    if values.dim() != 1 or bool((values < 0).any()) or abs(total - 1) > 1e-5:
        raise ValueError(
            f"{name} must be a distribution over the vocabulary, [V]; got shape {list(values.shape)}, sum {total:g}"
        )
    return values / total
