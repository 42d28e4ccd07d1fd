"""What a loss takes and gives: the tokens of a batch, laid flat, and one loss value for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import torch
from torch import Tensor

Need = Literal["head", "draws", "draw_sampler_logprobs"]
"""What a loss reads beside the sampled token: the sampler's top-k, its extra draws, its log q of them."""

_FIELDS: dict[Need, tuple[str, ...]] = {
    "head": ("head_logprobs", "head_sampler_logprobs"),
    "draws": ("draw_logprobs",),
    "draw_sampler_logprobs": ("draw_sampler_logprobs",),
}


@dataclass(frozen=True, eq=False)
class TokenBatch:
    """N completion tokens; log-probabilities in nats, float32 or float64, after temperature on both sides.

    Attributes:
        logprobs: [N] trainer's log p(y_t), with its graph.
        sampler_logprobs: [N] sampler's log q(y_t).
        advantages: [N].
        head_logprobs: [N, k] trainer's log p of the sampler's top-k tokens, with its graph. The k tokens of a
            row must differ: an engine that lists the sampled token before its top-k can repeat it there, and
            a repeated token is subtracted twice. A row with fewer than k tokens is padded with -inf on both
            sides.
        head_sampler_logprobs: [N, k] sampler's log q of the same tokens.
        draw_logprobs: [N, K] trainer's log p of K further tokens drawn from the sampler at the same position,
            with its graph. Draws are independent and may repeat.
        draw_sampler_logprobs: [N, K] sampler's log q of the same draws.

    Raises:
        ValueError: shapes that do not fit, or one side of the head without the other.
    """

    logprobs: Tensor
    sampler_logprobs: Tensor
    advantages: Tensor
    head_logprobs: Tensor | None = None
    head_sampler_logprobs: Tensor | None = None
    draw_logprobs: Tensor | None = None
    draw_sampler_logprobs: Tensor | None = None

    def __post_init__(self) -> None:
        if self.logprobs.dim() != 1:
            raise ValueError(f"logprobs must be [N], one per completion token; got {_shape(self.logprobs)}")
        for name in ("sampler_logprobs", "advantages"):
            tensor: Tensor = getattr(self, name)
            if tensor.shape != self.logprobs.shape:
                raise ValueError(f"{name} must be {_shape(self.logprobs)} like logprobs; got {_shape(tensor)}")
        self._check_pair("head_logprobs", "head_sampler_logprobs", both=True)
        self._check_pair("draw_logprobs", "draw_sampler_logprobs", both=False)

    def _check_pair(self, name: str, sampler_name: str, both: bool) -> None:
        tensor: Tensor | None = getattr(self, name)
        sampler: Tensor | None = getattr(self, sampler_name)
        if tensor is None and sampler is None:
            return
        if tensor is None or (both and sampler is None):
            missing = name if tensor is None else sampler_name
            raise ValueError(f"{missing} is missing: {name} and {sampler_name} belong together")
        if tensor.dim() != 2 or tensor.shape[0] != self.logprobs.shape[0] or tensor.shape[1] == 0:
            raise ValueError(f"{name} must be [{self.logprobs.shape[0]}, at least 1]; got {_shape(tensor)}")
        if sampler is not None and sampler.shape != tensor.shape:
            raise ValueError(f"{sampler_name} must be {_shape(tensor)} like {name}; got {_shape(sampler)}")

    def __len__(self) -> int:
        return self.logprobs.shape[0]

    @property
    def log_ratio(self) -> Tensor:
        """[N] log r_t = log p(y_t) - log q(y_t), with the graph of p."""
        return self.logprobs - self.sampler_logprobs

    @property
    def ratio(self) -> Tensor:
        """[N] r_t = p(y_t) / q(y_t), the importance ratio, without graph."""
        return self.log_ratio.detach().exp()

    def field(self, name: str, loss: str) -> Tensor:
        """An optional field that the loss called `loss` cannot do without.

        Raises:
            ValueError: it is absent.
        """
        tensor: Tensor | None = getattr(self, name)
        if tensor is None:
            raise ValueError(f"loss {loss} needs {name}, which this batch does not have")
        return tensor


@dataclass(frozen=True, eq=False)
class TokenLoss:
    """What a loss returns.

    Attributes:
        per_token: [N], with graph. The trainer sums it and divides by the number of completion tokens of the
            global batch, so a loss does not depend on how the batch is cut into microbatches.
        metrics: scalars without graph, each a **sum** over the N tokens for the same reason: `ratio`,
            `mismatch_kl` (r - log r - 1), `weight` (w_t), `masked` (tokens whose policy-gradient term was
            dropped), and, where there is a head, `sampler_tail` and `trainer_tail` (probability outside it).
    """

    per_token: Tensor
    metrics: dict[str, Tensor]


class Loss(Protocol):
    """A loss of the family: settings are its fields, the batch its argument."""

    name: ClassVar[str]
    """What configuration and command line call it."""
    label: ClassVar[str]
    """What a figure calls it."""
    needs: ClassVar[frozenset[Need]]
    """What the sampler must return beside the sampled tokens."""

    def __call__(self, batch: TokenBatch) -> TokenLoss: ...


def required_fields(loss: Loss | type[Loss]) -> tuple[str, ...]:
    """The optional fields of `TokenBatch` that a loss reads."""
    return tuple(field for need in sorted(loss.needs) for field in _FIELDS[need])


def token_metrics(batch: TokenBatch, weight: Tensor) -> dict[str, Tensor]:
    """The metrics that every loss has, as sums over tokens; `weight` is [N]."""
    log_ratio = batch.log_ratio.detach()
    return {
        "ratio": batch.ratio.sum(),
        "mismatch_kl": (batch.ratio - log_ratio - 1).sum(),
        "weight": weight.detach().sum(),
        "masked": (weight.detach() == 0).to(log_ratio.dtype).sum(),
    }


def weighted_score_loss(batch: TokenBatch, weight: Tensor, centering: Tensor | None = None) -> Tensor:
    """The form that all methods under mismatch share.

        L_t = -A ( sg[w_t] log p(y_t) - sum_v sg[c_v] log p_v )

    Source: SC, appendix C.

    Args:
        weight: [N] w_t.
        centering: [N] the sum over v, its coefficients without graph; None for a method that does not center.

    Returns:
        [N].
    """
    score = weight.detach() * batch.logprobs
    return -batch.advantages * (score if centering is None else score - centering)


def weighted_sum(coefficients: Tensor, logprobs: Tensor) -> Tensor:
    """sum_v sg[c_v] log p_v over the last dimension; a zero coefficient outweighs an infinite log p_v."""
    products = coefficients.detach() * logprobs
    return torch.where(coefficients == 0, 0.0, products).sum(dim=-1)


def _shape(tensor: Tensor) -> str:
    return str(list(tensor.shape))
