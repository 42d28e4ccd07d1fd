"""The tree scorer: all answers after all prefixes in one forward pass over their trie, in process.

Every token that two scorings share is computed once: a prompt by its group, a prefix by the rollouts and
boundaries it serves, a template and the common beginning of answers by their bank. The rows of many trees lie
one after the other without padding; a `TreeLayout` lets each attend to its own ancestors alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from stepcredit.modeling.attention import use_layouts
from stepcredit.modeling.linears import linears_by_onednn
from stepcredit.scoring.row_wise import row_wise
from stepcredit.scoring.scorer import LogLikelihoods, ScoringCost, ScoringRequest
from stepcredit.scoring.tree_chunk import Chunk, build_chunk
from stepcredit.scoring.tree_plan import Integers, Plan

LOGITS_AT_ONCE = 2**24
"""Logits held at a time: 64 MiB in float32, whatever the vocabulary."""


class TreeScorer:
    """Scores with a Hugging Face causal model in this process; implements `Scorer`.

    The model may be one that is being trained: its weights are read at each call and no gradient is kept.

    Args:
        model: any causal model whose attention goes through `transformers`' attention interface.
        tokens_per_chunk: rows of one forward pass, about; a rollout with its branches is never split.
    """

    def __init__(self, model: PreTrainedModel, tokens_per_chunk: int = 4096) -> None:
        self.model = use_layouts(model)
        self.tokens_per_chunk = tokens_per_chunk

    def score(self, requests: Sequence[ScoringRequest]) -> tuple[list[LogLikelihoods], ScoringCost]:
        """See `Scorer.score`."""
        plan = Plan(requests)
        values = np.full(plan.unique, np.nan)
        computed = 0
        training = self.model.training
        self.model.eval()
        try:
            for jobs in plan.chunks(self.tokens_per_chunk):
                chunk = build_chunk(jobs, plan.trie, self.model.dtype, self.model.device)
                values[chunk.slots] = self._log_likelihoods(chunk)
                computed += len(chunk.tokens)
        finally:
            self.model.train(training)
        cost = ScoringCost(
            scorings=sum(map(len, requests)),
            scorings_unique=plan.unique,
            tokens_computed=computed,
        )
        return [values[positions] for positions in plan.positions], cost

    @torch.inference_mode()
    def _log_likelihoods(self, chunk: Chunk) -> LogLikelihoods:
        """Of each scoring of the chunk, summed in float64: [scorings]."""
        predicting, row_of = np.unique(chunk.rows, return_inverse=True)
        rows = torch.from_numpy(predicting).to(chunk.tokens.device)
        with linears_by_onednn(self.model):
            with row_wise(self.model, rows, chunk.last_layout):
                hidden = self.model.base_model(
                    input_ids=chunk.tokens[None],
                    position_ids=chunk.positions[None],
                    layout=chunk.layout,
                    use_cache=False,
                ).last_hidden_state[0]
            logprobs = self._logprobs(hidden[rows], row_of, chunk.targets)
        return np.add.reduceat(logprobs, chunk.starts)

    def _logprobs(self, hidden: Tensor, rows: Integers, targets: Integers) -> LogLikelihoods:
        """log p(target | row) in nats, [targets] float64, of hidden states [rows, hidden_size]."""
        unembed = self.model.get_output_embeddings()
        result = np.empty(len(targets))
        step = max(1, LOGITS_AT_ONCE // self.model.config.vocab_size)
        for start in range(0, len(hidden), step):
            logprobs = unembed(hidden[start : start + step]).float().log_softmax(-1)
            here = (rows >= start) & (rows < start + step)
            picked = logprobs[torch.from_numpy(rows[here] - start), torch.from_numpy(targets[here])]
            result[here] = picked.cpu().numpy()
        return result
