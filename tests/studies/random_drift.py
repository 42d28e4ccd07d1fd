"""Drift, measured: how a constant reward moves the logits under each loss, as the sampler departs from the
trainer.

Exact expectations, no training: the drift is what `expected_update` gives when every token earns the same
reward. Source: SC, Eq. 3 and the table of appendix C.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from stepcredit.losses import LOSSES, build_loss, expected_update

MISMATCHES = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0)
"""Standard deviation of the noise on the sampler's logits (nats)."""
VOCABULARY = 40


@dataclass(frozen=True)
class Drift:
    """Drift of one loss at one mismatch.

    Attributes:
        loss: its name.
        mismatch: standard deviation of the noise on the sampler's logits.
        head_size: tokens in the sampler's top-k.
        total_variation: (1 / 2) sum |p - q|, mean over positions.
        drift: (1 / 2) sum_v |expected update of z_v| at reward 1, mean over positions; the plain policy
            gradient's is the total variation.
    """

    loss: str
    mismatch: float
    head_size: int
    total_variation: float
    drift: float


def drift_by_mismatch(
    losses: Iterable[str] = tuple(LOSSES),
    mismatches: Sequence[float] = MISMATCHES,
    head_size: int = 8,
    positions: int = 20,
    seed: int = 0,
) -> list[Drift]:
    """Drift of each loss at each mismatch, over the same random positions."""
    return [
        _mean_drift(loss, mismatch, head_size, _positions(mismatch, positions, seed))
        for loss in losses
        for mismatch in mismatches
    ]


def drift_by_head_size(
    head_sizes: Sequence[int] = (1, 2, 4, 8, 16, 32, VOCABULARY),
    mismatch: float = 0.5,
    positions: int = 20,
    seed: int = 0,
) -> list[Drift]:
    """What the tail model leaves of the drift, by the number of tokens that the sampler logs."""
    where = _positions(mismatch, positions, seed)
    return [_mean_drift("sc", mismatch, head_size, where) for head_size in head_sizes]


def _positions(mismatch: float, count: int, seed: int) -> list[tuple[Tensor, Tensor]]:
    """Pairs (p, q) [V]: random trainer logits (spread 2 nats), the sampler's with noise on top."""
    generator = torch.Generator().manual_seed(seed)
    pairs = []
    for _ in range(count):
        logits, noise = (torch.randn(VOCABULARY, generator=generator, dtype=torch.float64) for _ in range(2))
        pairs.append(((2 * logits).softmax(0), (2 * logits + mismatch * noise).softmax(0)))
    return pairs


def _mean_drift(name: str, mismatch: float, head_size: int, positions: Sequence[tuple[Tensor, Tensor]]) -> Drift:
    loss = build_loss(name)
    updates = [expected_update(loss, p, q, 1.0, head_size) for p, q in positions]
    return Drift(
        loss=name,
        mismatch=mismatch,
        head_size=head_size,
        total_variation=_mean_half_sum([p - q for p, q in positions]),
        drift=_mean_half_sum(updates),
    )


def _mean_half_sum(vectors: Sequence[Tensor]) -> float:
    return float(torch.stack([vector.abs().sum() / 2 for vector in vectors]).mean())
