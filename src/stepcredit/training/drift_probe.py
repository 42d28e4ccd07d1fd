"""How a loss would move the policy under a constant reward, measured while it trains: zero on policy."""

from __future__ import annotations

import torch
from torch import Tensor

from stepcredit.losses import Loss, expected_update
from stepcredit.losses.score_centering import tail_mass


class DriftProbe:
    """Means over some positions of each micro-batch.

    The sampler's distribution is its top-k, and beyond it the trainer's, rescaled to the mass that is left (SC, Eq. 7).

    Args:
        positions: of each micro-batch, evenly spaced; 0: nothing is measured.
        head_size: tokens in the top-k that the loss centers with.
    """

    def __init__(self, loss: Loss, positions: int, head_size: int) -> None:
        self._loss = loss
        self._positions = positions
        self._head_size = head_size
        self._rows: list[tuple[float, float]] = []

    def add(self, logits: Tensor, head: tuple[Tensor, Tensor] | None) -> None:
        """Measure at some rows of `logits` [tokens, V]; `head`: ids and log q of the sampler's top-k, [tokens, k]."""
        if head is None or not len(logits):
            return
        head_ids, head_logprobs = head
        count = min(self._positions, len(logits))
        rows = torch.linspace(0, len(logits) - 1, count, device=logits.device).round().long()
        p = logits.detach()[rows].double().softmax(dim=-1)
        q = completed(p, head_ids[rows], head_logprobs[rows])
        for trainer, sampler in zip(p, q, strict=True):
            update = expected_update(self._loss, trainer, sampler, 1.0, min(self._head_size, len(sampler)))
            self._rows.append((half_sum(update), half_sum(sampler - trainer)))

    def means(self) -> dict[str, float]:
        """`drift`: (1 / 2) sum |expected update of the logits at reward 1|; `total_variation`: (1 / 2) sum |q - p|."""
        if not self._positions:
            return {}
        means = torch.tensor(self._rows, dtype=torch.float64).reshape(-1, 2).mean(dim=0).tolist()
        return {"drift": means[0], "total_variation": means[1]}


def completed(p: Tensor, head_ids: Tensor, head_logprobs: Tensor) -> Tensor:
    """[N, V] the sampler's distribution from its top-k and the trainer's tail. Source: SC, Eq. 7.

    Args:
        p: [N, V] the trainer's.
        head_ids, head_logprobs: [N, k] of the sampler.
    """
    tail = p.scatter(1, head_ids, 0.0)
    left = tail_mass(head_logprobs)[:, None]
    tail = tail * left / tail.sum(dim=1, keepdim=True).clamp(min=torch.finfo(torch.float64).tiny)
    q = tail.scatter(1, head_ids, head_logprobs.double().exp())
    return q / q.sum(dim=1, keepdim=True)


def half_sum(update: Tensor) -> float:
    """(1 / 2) sum |u_v|: the probability that an update of logits at rate 1 would move, to first order."""
    return float(update.abs().sum() / 2)
