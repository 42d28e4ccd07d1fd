"""A sampler made wrong on purpose: rounded weights, noisy weights, old weights.

Source: SC, "Drift is the trainer copying the sampler": the sampler is a slightly distorted copy of the trainer,
refreshed with the trainer's new weights, distortion and all. An FP8 KV cache is a setting of the engine.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor
from transformers import PreTrainedModel

from stepcredit.rollouts import Completion
from stepcredit.sampling.sampler import SAMPLED, Recording, Sampler
from stepcredit.seeds import derive_seed
from stepcredit.settings.mismatch import MismatchSettings

BITS = {"int8": 8, "int4": 4}
SMALLEST_SCALE = 1e-12


def fake_quantised(weight: Tensor, bits: int) -> Tensor:
    """A matrix as it comes back from symmetric integers with one scale an output channel (a row): same shape and dtype.

    round(w / s) s with s = max |w| / (2^(bits - 1) - 1) of the row.
    """
    largest = 2 ** (bits - 1) - 1
    scale = weight.abs().amax(dim=1, keepdim=True).clamp(min=SMALLEST_SCALE) / largest
    rounded: Tensor = (weight / scale).round() * scale
    return rounded


def noisy(weight: Tensor, sigma: float, seed: int) -> Tensor:
    """A matrix plus Gaussian noise of `sigma` times the standard deviation of its entries."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(weight.shape, generator=generator).to(weight.device)
    return weight + noise * weight.std() * sigma


def distorted(name: str, weight: Tensor, mismatch: MismatchSettings, seed: int) -> Tensor:
    """What the sampler gets for a parameter of the trainer; vectors (norms) stay as they are.

    Args:
        name: as in `named_parameters`; embedding and unembedding are told by it.
        seed: of the noise at this push.
    """
    if weight.ndim < 2:
        return weight
    is_embedding = "embed_tokens" in name or "lm_head" in name
    if mismatch.weights and (mismatch.embedding or not is_embedding):
        weight = fake_quantised(weight, BITS[mismatch.weights])
    return noisy(weight, mismatch.noise, derive_seed(seed, "noise", name)) if mismatch.noise else weight


class MismatchedSampler:
    """A `Sampler` that gets its weights distorted, and not at every push.

    Args:
        exact: the sampler that generates.
        seed: of the noise; each push has noise of its own.
    """

    def __init__(self, exact: Sampler, mismatch: MismatchSettings, seed: int) -> None:
        self.exact = exact
        self._mismatch = mismatch
        self._seed = seed
        self._pushes = 0
        self._copy: PreTrainedModel | None = None

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        seeds: Sequence[int],
        temperature: float,
        max_new_tokens: int,
        recording: Recording = SAMPLED,
    ) -> list[Completion]:
        """See `Sampler.generate`."""
        completions = self.exact.generate(
            prompts, seeds=seeds, temperature=temperature, max_new_tokens=max_new_tokens, recording=recording
        )
        behind = max(self._pushes - 1, 0) % self._mismatch.refresh_every
        return [replace(completion, lag=completion.lag + behind) for completion in completions]

    def push_weights(self, model: PreTrainedModel) -> None:
        """Take the weights of `model`, distorted, at the first call and at each `refresh_every`-th after it."""
        if self._pushes % self._mismatch.refresh_every == 0:
            self.exact.push_weights(self._distorted(model) if self._mismatch.changes_weights else model)
        self._pushes += 1

    def _distorted(self, model: PreTrainedModel) -> PreTrainedModel:
        if self._copy is None:
            self._copy = copy.deepcopy(model).requires_grad_(False)
        seed = derive_seed(self._seed, "push", self._pushes)
        wrong = dict(self._copy.named_parameters())
        with torch.no_grad():
            for name, weight in model.named_parameters():
                wrong[name].copy_(distorted(name, weight.detach(), self._mismatch, seed))
        return self._copy
