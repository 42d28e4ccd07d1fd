"""The importance ratio taken apart: what the backend does wrong, and what the policy update did.

    log p_new / q  =  log p_old / q  +  log p_new / p_old

q is what the sampler reported for the weights it sampled with (kept with the rollout), p_old the trainer's own log-prob
of the same token, recomputed before the first update on the batch, p_new the log-prob during optimisation. Sampler and
trainer share weights at p_old / q: whatever is not 1 there is the backend's. At p_new / p_old they share code: whatever
is not 1 there is the policy's. Source: PARITY, "Why we fixed backend correctness first": the clean-up it names for the
objective, to be done after the backend is right.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from stepcredit.losses.agreement import CLIP, effective_sample_size


@dataclass(frozen=True, eq=False)
class SplitRatio:
    """The two factors of the importance ratio, as logs.

    Attributes:
        backend: [N] log p_old / q, without graph: sampler against trainer at the same weights.
        update: [N] log p_new / p_old, with the graph of p_new: the policy update.
    """

    backend: Tensor
    update: Tensor

    @property
    def whole(self) -> Tensor:
        """[N] log p_new / q."""
        return self.backend + self.update


def split_ratio(logprobs: Tensor, old_logprobs: Tensor, sampler_logprobs: Tensor) -> SplitRatio:
    """Take log p_new / q apart.

    Args:
        logprobs: [N] trainer's log p_new, with its graph.
        old_logprobs: [N] trainer's log p_old, of the weights that the rollouts were sampled with.
        sampler_logprobs: [N] sampler's log q, as reported with the rollouts.

    Raises:
        ValueError: the shapes differ.
    """
    if not logprobs.shape == old_logprobs.shape == sampler_logprobs.shape:
        shapes = ", ".join(str(list(tensor.shape)) for tensor in (logprobs, old_logprobs, sampler_logprobs))
        raise ValueError(f"new, old and sampler log-probs must have one shape; got {shapes}")
    old = old_logprobs.detach()
    return SplitRatio(backend=old - sampler_logprobs.detach(), update=logprobs - old)


def split_metrics(split: SplitRatio) -> dict[str, float]:
    """What to log beside each other: for `backend`, `update` and the `whole` ratio its mean, share clipped and ESS.

    An effective sample size of the whole ratio alone cannot tell a wrong sampler from a large step.
    """
    metrics: dict[str, float] = {}
    with torch.no_grad():
        for name in ("backend", "update", "whole"):
            ratio = getattr(split, name).double().exp()
            metrics[f"{name}_ratio"] = ratio.mean().item()
            metrics[f"{name}_clipped"] = ((ratio - 1).abs() > CLIP).double().mean().item()
            metrics[f"{name}_effective_sample_size"] = effective_sample_size(ratio)
    return metrics


def decoupled_loss(split: SplitRatio, advantages: Tensor, backend_cap: float = 2.0, clip: float = CLIP) -> Tensor:
    """PPO's clipped surrogate on the policy update, weighted by the truncated backend ratio.

        L_t = -min(p_old / q, cap) min(r A, clip(r, 1 - clip, 1 + clip) A),  r = p_new / p_old

    The clip acts on the update alone, the truncation on the backend alone: a sampler that is off no longer eats up the
    trust region. It repairs nothing of the backend: the samples are still those of q.

    Args:
        advantages: [N].

    Returns:
        [N], with graph.
    """
    weight = split.backend.exp().clamp(max=backend_cap)
    ratio = split.update.exp()
    surrogate = torch.minimum(ratio * advantages, ratio.clamp(1 - clip, 1 + clip) * advantages)
    return -weight * surrogate
