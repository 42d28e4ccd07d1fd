"""Name a loss from the weights that one optimiser step changes.

Every loss leaves a fingerprint, its gradient. Two tricks make a training service show it: Adam with a huge
epsilon acts as SGD, and a rank-1 adapter on the unembedding carries the whole logit gradient in one column. A
candidate's gradient is then computed and compared. Source: SC, part 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from stepcredit.losses import LOSSES, Loss, build_loss
from stepcredit.studies.probe import Adapter, Probe, ProbeModel, probe_model

EPSILON = 1e4
"""Adam's epsilon: gradients are tiny beside it."""
LEARNING_RATE = 1.0
TOLERANCE = 1e-3
"""Largest distance at which a gradient still bears a candidate's name; a right match lies near 1e-9."""
TOUCHED = 1e-6
"""A logit moves when its gradient exceeds this share of the largest: float32 rounding stays below."""

Step = Callable[[ProbeModel, Probe], Adapter]
"""A black box: trains the adapter on one probe token for one optimiser step and returns the new adapter."""


@dataclass(frozen=True)
class Fingerprint:
    """How far a recovered gradient is from each candidate's.

    Attributes:
        distances: candidate -> relative residual in [0, 1], nearest first.
    """

    distances: Mapping[str, float]

    @property
    def nearest(self) -> str:
        return next(iter(self.distances))

    @property
    def distance(self) -> float:
        """Distance to the nearest candidate."""
        return self.distances[self.nearest]

    @property
    def named(self) -> str:
        """The nearest candidate, or "unknown" when none is within TOLERANCE."""
        return self.nearest if self.distance <= TOLERANCE else "unknown"


@dataclass(frozen=True)
class TokenGradient:
    """What one step revealed at one probe token.

    Attributes:
        loss: name of the loss behind the step.
        gradient: [V] float64, -dL/dz: positive where the update raises the logit.
        token: the sampled token.
        draws: the K extra draws of the probe.
    """

    loss: str
    gradient: Tensor
    token: int
    draws: tuple[int, ...]

    @property
    def touched(self) -> tuple[int, ...]:
        """The tokens whose logit moves."""
        size = self.gradient.abs()
        return tuple((size > TOUCHED * size.max()).nonzero().flatten().tolist())


def hidden_step(loss: Loss) -> Step:
    """A training service around `loss`, as its client sees it: data in, weights out.

    One step of Adam with epsilon 1e4 and no weight decay, on the adapter alone, over a batch of one token.
    """

    def step(model: ProbeModel, probe: Probe) -> Adapter:
        a, b = (matrix.clone().requires_grad_() for matrix in (model.adapter.A, model.adapter.B))
        optimizer = torch.optim.Adam([a, b], lr=LEARNING_RATE, eps=EPSILON, weight_decay=0.0)
        logits = model.logits(probe, Adapter(a, b))
        a.grad, b.grad = torch.autograd.grad(loss(probe.batch(logits)).per_token.sum(), [a, b])
        optimizer.step()
        return Adapter(a.detach(), b.detach())

    return step


def recovered_gradient(step: Step, model: ProbeModel, probe: Probe) -> Tensor:
    """[V] dL/dz at a probe token, read off one step.

    Trick 1: Adam's first step is -lr g / (|g| + eps), so that x = |change| / lr gives |g| = eps x / (1 - x),
        which for
    eps = 1e4 is the write-up's -eps / lr * change to a relative 1e-4.  Trick 2: with B = 0, dL/dB = dL/dz *
    (A h), and A does not move. Source: SC, part 1.
    """
    change = (step(model, probe).B - model.adapter.B).squeeze(1)
    share = change.abs() / LEARNING_RATE
    gradient = -change.sign() * EPSILON * share / (1 - share)
    return gradient / (model.adapter.A @ probe.hidden)


def predicted_gradient(loss: Loss, model: ProbeModel, probe: Probe) -> Tensor:
    """[V] dL/dz of a candidate at a probe token, straight from its formula: no adapter, no optimiser."""
    logits = model.logits(probe, model.adapter).detach().requires_grad_()
    return torch.autograd.grad(loss(probe.batch(logits)).per_token.sum(), logits)[0]


def identify(step: Step, model: ProbeModel, candidates: Mapping[str, Loss] | None = None) -> Fingerprint:
    """Compare what a black box does at the model's probe tokens with what every candidate would do.

    Args:
        step: the black box.
        model: where it is probed.
        candidates: losses by name; the whole family at published settings when absent.
    """
    return closest(step, model, predictions(model, candidates or known_losses()))


def predictions(model: ProbeModel, candidates: Mapping[str, Loss]) -> dict[str, Tensor]:
    """What every candidate would do at the model's probe tokens: [probes, V] each."""
    return {
        name: torch.stack([predicted_gradient(loss, model, probe) for probe in model.probes])
        for name, loss in candidates.items()
    }


def closest(step: Step, model: ProbeModel, predicted: Mapping[str, Tensor]) -> Fingerprint:
    """Compare what a black box does with predictions at the same probe tokens."""
    recovered = torch.stack([recovered_gradient(step, model, probe) for probe in model.probes])
    distances = {name: distance(recovered, gradient) for name, gradient in predicted.items()}
    return Fingerprint(dict(sorted(distances.items(), key=lambda item: item[1])))


def distance(recovered: Tensor, predicted: Tensor) -> float:
    """min over s >= 0 of |g - s c| / |g|: the share of the gradient that the candidate, rescaled, does not
    explain.

    Scale-free, since a service may divide its loss by anything, but with **one** scale for all probe tokens:
    losses that differ only by each token's weight (importance sampling, its truncated and masked forms)
    differ in it.

    Args:
        recovered, predicted: [probes, V].

    Returns:
        0 (explained) to 1 (orthogonal, or opposite).
    """
    if not bool(recovered.any()):
        return 0.0 if not bool(predicted.any()) else 1.0
    size = float((predicted * predicted).sum())
    scale = max(float((recovered * predicted).sum()) / size, 0.0) if size else 0.0
    return float((recovered - scale * predicted).norm() / recovered.norm())


def known_losses() -> dict[str, Loss]:
    """The whole family at its published settings."""
    return {name: build_loss(name) for name in LOSSES}


def fingerprint(name: str, seed: int = 0) -> Fingerprint:
    """Hide the loss `name` behind a training service on a random model, and identify it.

    Raises:
        ValueError: no such loss.
    """
    return identify(hidden_step(build_loss(name)), probe_model(seed))


def one_token_gradients(
    names: tuple[str, ...] = ("reinforce", "sc", "sc_sampled"), seed: int = 0, probe: int = 0
) -> list[TokenGradient]:
    """Recovered gradients of several losses at the same probe token: the data of SC's figures 3 and 5.

    Raises:
        ValueError: no such loss.
    """
    model = probe_model(seed)
    token = model.probes[probe]
    return [
        TokenGradient(
            loss=name,
            gradient=-recovered_gradient(hidden_step(build_loss(name)), model, token),
            token=token.token,
            draws=tuple(token.draws.tolist()),
        )
        for name in names
    ]
