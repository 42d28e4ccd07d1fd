"""A tiny random model with an adapter on its unembedding, and the tokens that tell the losses apart."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from stepcredit.losses import TokenBatch

VOCABULARY, HIDDEN, HEAD, DRAWS = 40, 16, 8, 8

PROBES = (
    (0.30, 0.28, +1.0),
    (0.30, 0.20, +1.0),
    (0.30, 0.20, -1.0),
    (0.20, 0.30, +1.0),
    (0.20, 0.30, -1.0),
    (0.12, 0.04, +1.0),
    (0.12, 0.02, -1.0),
    (0.05, 0.20, +1.0),
    (0.70, 0.40, +1.0),
    (0.70, 0.40, -1.0),
    (0.40, 0.70, +1.0),
    (0.40, 0.70, -1.0),
)
"""(p(y), q(y), A) of each probe token. The ratios lie inside (1.07) and on both sides (0.67, 1.5) of PPO's
clip, above TIS's cap (3), above and below MIS's range (6, 0.25); the last four differ by more than DPPO's 0.2
in probability. Both signs of the advantage stand where a loss treats them differently."""


@dataclass(frozen=True, eq=False)
class Adapter:
    """A rank-1 adapter z = W h + B (A h): A is [1, d], B is [V, 1]."""

    A: Tensor
    B: Tensor


@dataclass(frozen=True, eq=False)
class Probe:
    """One completion token as a client sends it, float64.

    Attributes:
        hidden: [d] the state under the unembedding.
        token: the sampled token y.
        advantage: its advantage.
        sampler_logprobs: [V] log q.
        head: [k] the sampler's top-k tokens.
        draws: [K] further tokens drawn from the sampler.
    """

    hidden: Tensor
    token: int
    advantage: float
    sampler_logprobs: Tensor
    head: Tensor
    draws: Tensor

    def batch(self, logits: Tensor) -> TokenBatch:
        """The batch of this one token under the trainer's `logits` [V]."""
        logprobs, sampler = logits.log_softmax(dim=0)[None], self.sampler_logprobs[None]
        return TokenBatch(
            logprobs=logprobs[:, self.token],
            sampler_logprobs=sampler[:, self.token],
            advantages=torch.tensor([self.advantage], dtype=logits.dtype),
            head_logprobs=logprobs[:, self.head],
            head_sampler_logprobs=sampler[:, self.head],
            draw_logprobs=logprobs[:, self.draws],
            draw_sampler_logprobs=sampler[:, self.draws],
        )


@dataclass(frozen=True, eq=False)
class ProbeModel:
    """An unembedding [V, d], frozen; a fresh adapter (B = 0); the probe tokens."""

    unembedding: Tensor
    adapter: Adapter
    probes: tuple[Probe, ...]

    def logits(self, probe: Probe, adapter: Adapter) -> Tensor:
        """[V] z = W h + B (A h)."""
        return self.unembedding @ probe.hidden + adapter.B @ (adapter.A @ probe.hidden)


def probe_model(seed: int) -> ProbeModel:
    """A random model with one probe token for each row of PROBES."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    rows = normal(VOCABULARY, HIDDEN)
    unembedding = rows / rows.norm(dim=1, keepdim=True)
    probes = []
    for trainer, sampler, advantage in PROBES:
        token = int(torch.randint(VOCABULARY, (1,), generator=generator))
        hidden = _state_with(unembedding, token, trainer, start=1.5 * normal(HIDDEN))
        weights = (unembedding @ hidden + 0.5 * normal(VOCABULARY)).softmax(dim=0)
        q = _with_probability(weights, token, sampler)
        draws = torch.multinomial(q, DRAWS, replacement=True, generator=generator)
        probes.append(Probe(hidden, token, advantage, q.log(), q.topk(HEAD).indices, draws))
    adapter = Adapter(normal(1, HIDDEN), torch.zeros(VOCABULARY, 1, dtype=torch.float64))
    return ProbeModel(unembedding, adapter, tuple(probes))


def _state_with(unembedding: Tensor, token: int, probability: float, start: Tensor) -> Tensor:
    """[d] `start` moved along the token's row until softmax(W h) gives the token `probability`.

    Rows have length 1, so the token's probability grows all the way along its own row: bisection finds the
    place.
    """
    low, high = -100.0, 100.0
    for _ in range(100):
        middle = (low + high) / 2
        reached = (unembedding @ (start + middle * unembedding[token])).softmax(dim=0)[token]
        low, high = (middle, high) if reached < probability else (low, middle)
    return start + low * unembedding[token]


def _with_probability(weights: Tensor, token: int, probability: float) -> Tensor:
    """[V] `weights`, a distribution, with the token's share set and the others' rescaled."""
    others = weights.clone()
    others[token] = 0
    q = (1 - probability) * others / others.sum()
    q[token] = probability
    return q
