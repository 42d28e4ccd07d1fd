"""The tokens of a micro-batch as a loss takes them: one gather from the trainer's logits for all that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from stepcredit.losses import Loss, TokenBatch
from stepcredit.modeling.logprobs import candidate_logprobs
from stepcredit.rollouts import Candidates
from stepcredit.sampling.sampler import Recording
from stepcredit.settings.rl import RLSettings


@dataclass(frozen=True)
class Sample:
    """A rollout as the trainer sees it.

    Attributes:
        prompt_ids, completion_ids: tokens.
        sampler_logprobs: the sampler's log-probability of each completion token, [tokens].
        advantages: of each completion token, float32 [tokens].
        head, draws: what the sampler noted beside each token, where the loss needs it.
    """

    prompt_ids: Sequence[int]
    completion_ids: Sequence[int]
    sampler_logprobs: Sequence[float]
    advantages: np.ndarray
    head: Candidates | None = None
    draws: Candidates | None = None

    @property
    def rows(self) -> int:
        return len(self.prompt_ids) + len(self.completion_ids)


def needed_recording(loss: Loss, settings: RLSettings) -> Recording:
    """What the sampler has to note for a loss, and for measuring its drift."""
    head = "head" in loss.needs or settings.drift_positions > 0
    return Recording(head=settings.head_size if head else 0, draws=settings.draws if "draws" in loss.needs else 0)


def token_batch(logits: Tensor, targets: Tensor, kept: Tensor, samples: Sequence[Sample]) -> TokenBatch:
    """The kept tokens of a micro-batch, with log-probabilities of the top-k and of the draws where there are any.

    Args:
        logits: [kept tokens, vocabulary], after temperature, with graph.
        targets: [tokens] the sampled tokens.
        kept: [tokens] bool.
        samples: whose completion tokens these are, in order.
    """
    device = logits.device
    sampler = torch.tensor([value for sample in samples for value in sample.sampler_logprobs], device=device)
    advantages = torch.from_numpy(np.concatenate([sample.advantages for sample in samples])).to(device)
    head = joined([sample.head for sample in samples], kept)
    draws = joined([sample.draws for sample in samples], kept)
    columns = [targets[kept][:, None], *(found[0] for found in (head, draws) if found)]
    logprobs = candidate_logprobs(logits, torch.cat(columns, dim=1))
    sampled, *others = torch.split(logprobs, [column.shape[1] for column in columns], dim=1)
    rest = iter(others)
    return TokenBatch(
        logprobs=sampled[:, 0],
        sampler_logprobs=sampler[kept],
        advantages=advantages[kept],
        head_logprobs=next(rest) if head else None,
        head_sampler_logprobs=head[1] if head else None,
        draw_logprobs=next(rest) if draws else None,
        draw_sampler_logprobs=draws[1] if draws else None,
    )


def joined(candidates: Sequence[Candidates | None], kept: Tensor) -> tuple[Tensor, Tensor] | None:
    """Tokens and log-probabilities [kept tokens, k] of all samples; None where they have none."""
    present = [found for found in candidates if found is not None]
    if len(present) != len(candidates) or not present:
        return None
    tokens = torch.from_numpy(np.concatenate([found.token_ids for found in present])).to(kept.device)
    logprobs = torch.from_numpy(np.concatenate([found.logprobs for found in present])).to(kept.device)
    return tokens[kept], logprobs[kept]
