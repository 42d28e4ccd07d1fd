"""The trainer's side of the audit: log-probs of sampled tokens by plain forward passes, in any precision."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from stepcredit.modeling.logprobs import packed_logits, token_logprobs
from stepcredit.modeling.model import load_model
from stepcredit.studies.parity.settings import Sampling, TrainerOptions

ROWS = 4096
"""Tokens in one forward pass, about."""


@dataclass(frozen=True)
class Sampled:
    """One completion as the sampler returned it: tokens, and its log-prob of each (nats)."""

    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]
    logprobs: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Scored:
    """Both sides' log-probs of the sampled tokens, [tokens], and the entropy of the trainer's distribution."""

    logprobs: Tensor
    sampler_logprobs: Tensor
    entropies: Tensor

    def __add__(self, other: Scored) -> Scored:
        return Scored(
            torch.cat([self.logprobs, other.logprobs]),
            torch.cat([self.sampler_logprobs, other.sampler_logprobs]),
            torch.cat([self.entropies, other.entropies]),
        )


class Trainer:
    """One checkpoint, in each precision that was asked for."""

    def __init__(self, directory: Path, device: str) -> None:
        self._directory = directory
        self._device = device
        self._models: dict[tuple[str, bool], PreTrainedModel] = {}

    def model(self, options: TrainerOptions | None = None) -> PreTrainedModel:
        """The checkpoint in a precision, loaded once."""
        options = options or TrainerOptions()
        key = (options.dtype, options.float32_head)
        if key not in self._models:
            model = load_model(self._directory, self._device).requires_grad_(False).eval()
            if options.dtype != "float32":
                model.to(getattr(torch, options.dtype))
                if options.float32_head:
                    model.set_output_embeddings(Float32Head(model.get_output_embeddings().weight))
            self._models[key] = model
        return self._models[key]

    @torch.inference_mode()
    def score(
        self,
        samples: Sequence[Sampled],
        sampling: Sampling,
        options: TrainerOptions | None = None,
        rows: int = ROWS,
    ) -> Scored:
        """Log-probs of each sampled token under the distribution that `sampling` makes of the model's.

        Args:
            rows: tokens in a micro-batch, about.
        """
        options = options or TrainerOptions()
        model = self.model(options)
        parts = []
        for batch in _batches(samples, rows):
            logits, tokens = packed_logits(model, [(sample.prompt_ids, sample.completion_ids) for sample in batch])
            logits = shaped_logits(logits, sampling, tokens, options.renormalise)
            reported = [value for sample in batch for value in sample.logprobs]
            sampler = torch.tensor(reported, dtype=torch.float64)
            logprobs = token_logprobs(logits, tokens).cpu()
            entropies = torch.special.entr(logits.softmax(-1)).sum(-1).cpu()  # dropped tokens add nothing
            parts.append(Scored(logprobs, sampler, entropies))
        return sum(parts[1:], parts[0])


class Float32Head(nn.Module):
    """An unembedding computed in float32 whatever the body's precision (PARITY, "fp32 lm_head")."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight.detach().float(), requires_grad=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """[..., hidden] to [..., vocabulary], float32."""
        return nn.functional.linear(hidden.float(), self.weight)


def shaped_logits(logits: Tensor, sampling: Sampling, tokens: Tensor, renormalise: bool = True) -> Tensor:
    """Logits of the distribution that the sampler draws from: temperature, then top-k, then top-p, as vLLM does.

    Args:
        logits: [tokens, vocabulary].
        tokens: [tokens] sampled ids: they were kept, so that rounding at the edge of top-p cannot drop them.
        renormalise: false leaves top-k and top-p out, as a trainer does that does not know of them.

    Returns:
        [tokens, vocabulary], dropped entries at -inf.
    """
    scaled = logits / sampling.temperature
    if not renormalise:
        return scaled
    keep = torch.ones_like(scaled, dtype=torch.bool)
    if sampling.top_k:
        keep &= scaled >= scaled.topk(min(sampling.top_k, scaled.shape[-1]), dim=-1).values[:, -1:]
    if sampling.top_p < 1:
        ordered, order = scaled.masked_fill(~keep, -math.inf).sort(dim=-1)
        dropped = ordered.softmax(-1).cumsum(-1) <= 1 - sampling.top_p
        dropped[:, -1] = False
        keep &= ~torch.zeros_like(dropped).scatter(-1, order, dropped)
    keep.scatter_(-1, tokens[:, None], True)
    return scaled.masked_fill(~keep, -math.inf)


def _batches(samples: Sequence[Sampled], limit: int) -> Iterator[list[Sampled]]:
    batch: list[Sampled] = []
    rows = 0
    for sample in samples:
        size = len(sample.prompt_ids) + len(sample.completion_ids)
        if batch and rows + size > limit:
            yield batch
            batch, rows = [], 0
        batch.append(sample)
        rows += size
    if batch:
        yield batch
