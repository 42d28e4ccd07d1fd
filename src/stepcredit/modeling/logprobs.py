"""Log-probabilities of given tokens under a model, on packed sequences."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import PreTrainedModel

from stepcredit.modeling.attention import Packed


def packed_logits(
    model: PreTrainedModel, sequences: Sequence[tuple[Sequence[int], Sequence[int]]]
) -> tuple[Tensor, Tensor]:
    """Logits that predict the completion tokens of (prompt, completion) pairs, and those tokens.

    All pairs run as one flat sequence without padding; the unembedding sees only the rows that predict a
    completion token.

    Returns:
        logits [tokens, vocabulary] float32 and the completion tokens [tokens] int64, in the order of the pairs.
    """
    device = model.device
    layout = Packed([len(prompt) + len(completion) for prompt, completion in sequences])
    flat: list[int] = []
    rows: list[Tensor] = []
    for prompt, completion in sequences:
        first = len(flat) + len(prompt) - 1
        rows.append(torch.arange(first, first + len(completion)))
        flat.extend(prompt)
        flat.extend(completion)
    ids = torch.tensor(flat, dtype=torch.int64)
    predicting = torch.cat(rows)
    hidden = model.base_model(
        input_ids=ids[None].to(device),
        position_ids=layout.position_ids().to(device),
        use_cache=False,
        layout=layout,
    ).last_hidden_state[0]
    logits = model.get_output_embeddings()(hidden[predicting.to(device)]).float()
    return logits, ids[predicting + 1].to(device)


def token_logprobs(logits: Tensor, tokens: Tensor) -> Tensor:
    """log softmax(logits)[token] of each row: [tokens] (nats)."""
    return candidate_logprobs(logits, tokens[:, None])[:, 0]


def candidate_logprobs(logits: Tensor, tokens: Tensor) -> Tensor:
    """log softmax(logits) at several tokens of each row: logits [N, V], tokens [N, k] -> [N, k] (nats)."""
    return logits.gather(-1, tokens) - logits.logsumexp(-1, keepdim=True)


def entropy(logits: Tensor) -> Tensor:
    """Entropy of softmax(logits) of each row: [tokens] (nats)."""
    logp = torch.log_softmax(logits, -1)
    return -(logp.exp() * logp).sum(-1)
