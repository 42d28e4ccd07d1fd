"""One policy update: micro-batches of packed rollouts, the loss, clipping, AdamW, and what it did."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from stepcredit.losses import Loss, TokenBatch
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
    """Sums over the tokens of all micro-batches, and the means they give."""

    def __init__(self) -> None:
        self.loss = 0.0
        self._count = 0
        self._sums: dict[str, float] = {}
        self._worst = 0.0

    def add(self, batch: TokenBatch, masked: Tensor, entropies: Tensor) -> None:
        log_ratio = (batch.logprobs - batch.sampler_logprobs).double()
        ratio = log_ratio.exp()
        terms = {
            "entropy": entropies.double(),
            "mean_ratio": ratio,
            "squared_ratio": ratio.square(),
            "mismatch_kl": ratio - log_ratio - 1,
            "clipped": ((ratio - 1).abs() > 0.2).double(),
            "masked": masked,
        }
        for name, term in terms.items():
            self._sums[name] = self._sums.get(name, 0.0) + term.sum().item()
        self._count += len(log_ratio)
        if len(log_ratio):
            self._worst = max(self._worst, log_ratio.abs().max().item())

    def means(self) -> dict[str, float]:
        """Means over tokens; the effective sample size is (sum r)^2 / (n sum r^2). NaN where nothing was trained."""
        if not self._count:
            names = ("entropy", "mean_ratio", "mismatch_kl", "clipped", "masked", "effective_sample_size")
            return {"loss": 0.0, **dict.fromkeys((*names, "max_log_ratio"), float("nan"))}
        means = {name: total / self._count for name, total in self._sums.items()}
        squared = means.pop("squared_ratio")
        return {
            "loss": self.loss,
            **means,
            "effective_sample_size": means["mean_ratio"] ** 2 / squared,
            "max_log_ratio": self._worst,
        }
