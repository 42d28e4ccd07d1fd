"""One policy update: micro-batches of packed rollouts, the loss, clipping, AdamW, and what it did."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from stepcredit.losses import Loss, TokenBatch
from stepcredit.losses.agreement import STEP_METRICS, measure_agreement, step_metrics
from stepcredit.modeling.checkpointing import gradient_checkpointing
from stepcredit.modeling.logprobs import entropy, packed_logits
from stepcredit.settings.rl import RLSettings
from stepcredit.training.drift_probe import DriftProbe
from stepcredit.training.microbatches import microbatches
from stepcredit.training.optimizer import set_learning_rate
from stepcredit.training.token_batch import Sample, joined, token_batch


class PolicyUpdate:
    """Updates a policy on the samples of one RL step."""

    def __init__(
        self, model: PreTrainedModel, optimizer: torch.optim.Optimizer, loss: Loss, settings: RLSettings
    ) -> None:
        self._model = model
        self._optimizer = optimizer
        self._loss = loss
        self._settings = settings

    def step(self, samples: Sequence[Sample], learning_rate: float) -> dict[str, float]:
        """One optimiser step; the loss is the sum over tokens divided by their number in the whole batch.

        Tokens whose advantage is exactly zero are left out where `filter_zero_advantages` says so (prime-rl's
        default, SPEC section 3). A batch of which nothing is left updates nothing.
        """
        if self._settings.filter_zero_advantages:
            samples = [sample for sample in samples if sample.advantages.any()]
        tokens = sum(self._kept(sample).sum() for sample in samples)
        totals = _Totals()
        probe = DriftProbe(self._loss, self._settings.drift_positions, self._settings.head_size)
        with gradient_checkpointing(self._model, self._settings.gradient_checkpointing):
            for batch in microbatches(samples, lambda sample: sample.rows, self._settings.tokens_per_microbatch):
                totals.loss += self._backward(batch, tokens, totals, probe)
        norm = 0.0
        if tokens:
            set_learning_rate(self._optimizer, learning_rate)
            limit = self._settings.optimizer.max_grad_norm
            norm = torch.nn.utils.clip_grad_norm_(self._model.parameters(), limit).item()
            self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        return {
            **totals.means(),
            **probe.means(),
            "grad_norm": norm,
            "learning_rate": learning_rate,
            "trained_tokens": int(tokens),
        }

    def _kept(self, sample: Sample) -> np.ndarray:
        every = np.ones(len(sample.advantages), dtype=bool)
        return np.not_equal(sample.advantages, 0) if self._settings.filter_zero_advantages else every

    def _backward(self, batch: Sequence[Sample], tokens: int, totals: _Totals, probe: DriftProbe) -> float:
        logits, targets = packed_logits(self._model, [(s.prompt_ids, s.completion_ids) for s in batch])
        kept = torch.from_numpy(np.concatenate([self._kept(sample) for sample in batch])).to(logits.device)
        logits = logits[kept] / self._settings.temperature
        tokens_kept = token_batch(logits, targets, kept, batch)
        token_loss = self._loss(tokens_kept)
        loss = token_loss.per_token.sum() / tokens
        loss.backward()  # type: ignore[no-untyped-call]
        with torch.no_grad():
            totals.add(tokens_kept, token_loss.metrics["masked"], entropy(logits))
        if self._settings.drift_positions:
            probe.add(logits, joined([sample.head for sample in batch], kept))
        return float(loss.item())


class _Totals:
    """What the micro-batches leave of each token, and what it says of the whole batch."""

    def __init__(self) -> None:
        self.loss = 0.0
        self._masked = 0.0
        self._logprobs: list[Tensor] = []
        self._sampler_logprobs: list[Tensor] = []
        self._entropies: list[Tensor] = []

    def add(self, batch: TokenBatch, masked: Tensor, entropies: Tensor) -> None:
        self._masked += masked.sum().item()
        self._logprobs.append(batch.logprobs.detach())
        self._sampler_logprobs.append(batch.sampler_logprobs)
        self._entropies.append(entropies)

    def means(self) -> dict[str, float]:
        """Means over the trained tokens, and how sampler and trainer agree on them. NaN where nothing was trained."""
        entropies = torch.cat(self._entropies) if self._entropies else torch.empty(0)
        if not len(entropies):
            return {"loss": 0.0, **dict.fromkeys(("entropy", "masked", *STEP_METRICS), math.nan)}
        agreement = measure_agreement(torch.cat(self._logprobs), torch.cat(self._sampler_logprobs), entropies)
        return {
            "loss": self.loss,
            "entropy": entropies.double().mean().item(),
            "masked": self._masked / len(entropies),
            **step_metrics(agreement),
        }
