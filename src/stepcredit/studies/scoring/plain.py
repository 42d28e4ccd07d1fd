"""What every scorer must return: plain forward passes, one sequence at a time."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import PreTrainedModel

from stepcredit.scoring.scorer import LogLikelihoods, Scoring, ScoringRequest, deduplicate


def plain_scores(model: PreTrainedModel, requests: Sequence[ScoringRequest]) -> list[LogLikelihoods]:
    """Log-likelihoods in nats, [boundaries, answers] of each request, by the model as it is, without our attention."""
    unique, positions = deduplicate(requests)
    implementation = model.config._attn_implementation
    model.set_attn_implementation("sdpa")
    try:
        values = torch.stack([_score(model, scoring) for scoring in unique]).numpy()
    finally:
        model.set_attn_implementation(implementation)
    return [values[position] for position in positions]


@torch.inference_mode()
def _score(model: PreTrainedModel, scoring: Scoring) -> torch.Tensor:
    targets = torch.tensor(scoring.tokens[scoring.start :])
    logits = model(torch.tensor([scoring.tokens[:-1]]), logits_to_keep=len(targets), use_cache=False).logits[0]
    logprobs: torch.Tensor = logits.double().log_softmax(-1).gather(1, targets[:, None])
    return logprobs.sum()
