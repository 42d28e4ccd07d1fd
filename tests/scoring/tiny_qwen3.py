"""A tiny random Qwen3, a workload of the published shape, and plain forwards to hold every scorer against."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from transformers import PreTrainedModel, Qwen3Config, Qwen3ForCausalLM

from stepcredit.scoring.scorer import ScoringRequest

VOCABULARY = 97
TEMPLATE = (7, 8, 9)
MAX_LENGTH = 1024


def build_checkpoint(directory: Path, seed: int) -> PreTrainedModel:
    """Save a model whose distributions are far from flat, and return it."""
    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,
        max_position_embeddings=MAX_LENGTH,
        tie_word_embeddings=True,
        initializer_range=0.3,
        bos_token_id=None,
        eos_token_id=1,
        pad_token_id=0,
    )
    model = Qwen3ForCausalLM(config).float().eval()
    model.save_pretrained(directory)
    return model


def workload(seed: int, rollouts: int, boundaries: int = 10, answers: int = 8) -> list[ScoringRequest]:
    """Rollouts of one prompt, scored against one bank; some answers begin alike, two are the same."""
    draw = random.Random(seed)
    prompt = _tokens(draw, 80)
    common = _tokens(draw, 2)
    bank = [common[: draw.randrange(3)] + _tokens(draw, draw.randrange(5, 9)) for _ in range(answers - 1)]
    requests = []
    for _ in range(rollouts):
        body = _tokens(draw, draw.randrange(300, 700))
        cuts = [0, *sorted(draw.sample(range(1, len(body)), boundaries - 1))]
        requests.append(
            ScoringRequest(
                trunk=prompt + body,
                boundaries=tuple(len(prompt) + cut for cut in cuts),
                template=TEMPLATE,
                answers=(*bank, bank[0]),
            )
        )
    return requests


def plain_scores(model: PreTrainedModel, requests: Sequence[ScoringRequest]) -> npt.NDArray[np.float64]:
    """Every logical scoring by a plain forward pass; the answers after one prefix are one padded batch."""
    found = []
    for request in requests:
        for boundary in request.boundaries:
            prefix = request.trunk[:boundary] + request.template
            found.extend(_scores_after(model, prefix, request.answers))
    return np.array(found)


def plain_score(model: PreTrainedModel, tokens: Sequence[int], start: int, end: int) -> float:
    """Sum of the log-probs of tokens[start:end]."""
    return _scores_after(model, tokens[:start], [tokens[start:end]])[0]


def _scores_after(model: PreTrainedModel, prefix: Sequence[int], answers: Sequence[Sequence[int]]) -> list[float]:
    longest = max(map(len, answers))
    padded = torch.tensor([[*prefix, *answer, *[0] * (longest - len(answer))] for answer in answers])
    with torch.no_grad():
        logits = model(padded, logits_to_keep=longest + 1).logits.double()
    return [
        float(rows[: len(answer)].log_softmax(-1).gather(1, torch.tensor(answer)[:, None]).sum())
        for rows, answer in zip(logits, answers, strict=True)
    ]


def flat(scores: Sequence[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
    """A scorer's matrices as one vector, in the order of `plain_scores`."""
    return np.concatenate([matrix.ravel() for matrix in scores])


def _tokens(draw: random.Random, number: int) -> tuple[int, ...]:
    return tuple(draw.randrange(10, VOCABULARY) for _ in range(number))
