"""One policy update: micro-batches of packed rollouts, the loss, clipping, AdamW, and what it did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from stepcredit.config import RLSettings
from stepcredit.losses import Loss, TokenBatch
from stepcredit.modeling.logprobs import entropy, packed_logits, token_logprobs
from stepcredit.training.optimizer import set_learning_rate


@dataclass(frozen=True)
class Sample:
    """A rollout as the trainer sees it.

    Attributes:
        prompt_ids, completion_ids: tokens.
        sampler_logprobs: the sampler's log-probability of each completion token, [tokens].
        advantages: of each completion token, float32 [tokens].
    """

    prompt_ids: Sequence[int]
    completion_ids: Sequence[int]
    sampler_logprobs: Sequence[float]
    advantages: np.ndarray

    @property
    def rows(self) -> int:
        return len(self.prompt_ids) + len(self.completion_ids)


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
        for batch in microbatches(samples, self._settings.tokens_per_microbatch):
            loss = self._backward(batch, tokens, totals)
            totals.loss += loss
        norm = 0.0
        if tokens:
            set_learning_rate(self._optimizer, learning_rate)
            limit = self._settings.optimizer.max_grad_norm
            norm = torch.nn.utils.clip_grad_norm_(self._model.parameters(), limit).item()
            self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        return {
            **totals.means(),
            "grad_norm": norm,
            "learning_rate": learning_rate,
            "trained_tokens": int(tokens),
        }

    def _kept(self, sample: Sample) -> np.ndarray:
        every = np.ones(len(sample.advantages), dtype=bool)
        return np.not_equal(sample.advantages, 0) if self._settings.filter_zero_advantages else every

    def _backward(self, batch: Sequence[Sample], tokens: int, totals: _Totals) -> float:
        logits, targets = packed_logits(self._model, [(s.prompt_ids, s.completion_ids) for s in batch])
        kept = torch.from_numpy(np.concatenate([self._kept(sample) for sample in batch])).to(logits.device)
        sampler = torch.tensor([value for sample in batch for value in sample.sampler_logprobs], device=logits.device)
        advantages = torch.from_numpy(np.concatenate([sample.advantages for sample in batch])).to(logits.device)
        logits = logits[kept] / self._settings.temperature
        token_batch = TokenBatch(
            logprobs=token_logprobs(logits, targets[kept]),
            sampler_logprobs=sampler[kept],
            advantages=advantages[kept],
        )
        token_loss = self._loss(token_batch)
        loss = token_loss.per_token.sum() / tokens
        loss.backward()  # type: ignore[no-untyped-call]
        with torch.no_grad():
            totals.add(token_batch, token_loss.metrics["masked"], entropy(logits))
        return float(loss.item())


def microbatches(samples: Sequence[Sample], max_rows: int) -> Iterator[list[Sample]]:
    """The samples by length, in batches of at most `max_rows` rows (a longer sample is a batch by itself)."""
    batch: list[Sample] = []
    rows = 0
    for sample in sorted(samples, key=lambda sample: sample.rows):
        if batch and rows + sample.rows > max_rows:
            yield batch
            batch, rows = [], 0
        batch.append(sample)
        rows += sample.rows
    if batch:
        yield batch


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
