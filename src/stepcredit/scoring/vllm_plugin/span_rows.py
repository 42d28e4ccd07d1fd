"""V1 model runner: lm_head and log-softmax of the span rows only, for all scoring requests at once."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor

from stepcredit.scoring.vllm_plugin.span import SpanMark, read_mark

_LOGITS_AT_ONCE = 2**25
"""Logits held at one time (128 MiB in float32); over the vocabulary: the rows of one lm_head call."""


def compute_span_rows_only() -> None:
    """Wrap `GPUModelRunner._get_prompt_logprobs_dict` (the CPU runner inherits it); once."""
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    original = GPUModelRunner._get_prompt_logprobs_dict
    if hasattr(original, "__stepcredit__"):
        return

    @functools.wraps(original)
    def _get_prompt_logprobs_dict(self: Any, hidden_states: Tensor, num_scheduled_tokens: dict[str, int]) -> Any:
        wanted = self.num_prompt_logprobs
        marks = {request_id: mark for request_id in wanted if (mark := _mark(self, request_id))}
        if not marks:
            return original(self, hidden_states, num_scheduled_tokens)
        finished = score_spans(self, hidden_states, num_scheduled_tokens, marks)
        others = {request_id: wanted[request_id] for request_id in wanted if request_id not in marks}
        asked = set(others)
        self.num_prompt_logprobs = others
        try:
            finished |= original(self, hidden_states, num_scheduled_tokens)
        finally:
            self.num_prompt_logprobs = wanted
        for request_id in (asked - set(others)) | (set(marks) & set(finished)):
            del wanted[request_id]
        return finished

    _get_prompt_logprobs_dict.__stepcredit__ = True  # type: ignore[attr-defined]
    GPUModelRunner._get_prompt_logprobs_dict = _get_prompt_logprobs_dict


def score_spans(
    runner: Any, hidden_states: Tensor, scheduled: dict[str, int], marks: dict[str, SpanMark]
) -> dict[str, Any]:
    """Fill in the span rows that this step computed; return the requests whose prefill ended with it.

    Rows are kept on the request's state between chunks, from NaN, so that a row that was never computed
    shows.

    Args:
        runner: a V1 `GPUModelRunner`.
        hidden_states: (scheduled tokens, hidden size) of this step.
        scheduled: number of tokens of each request in this step; a request without is preempted or waits.
        marks: those of the scoring requests; each has its `last`.

    Returns:
        request id -> `LogprobsTensors` with one row for each token of the span.
    """
    rows: list[Tensor] = []
    targets: list[int] = []
    places: list[Tensor] = []
    finished = {}
    for request_id, mark in marks.items():
        if request_id not in scheduled:
            continue
        state = runner.requests[request_id]
        prompt = state.prompt_token_ids
        tokens, first_row = [*prompt, mark.last], mark.start - 1
        computed = state.num_computed_tokens
        after = computed + scheduled[request_id]
        if computed <= first_row or state.in_progress_prompt_logprobs_cpu is None:
            state.in_progress_prompt_logprobs_cpu = _no_rows_yet(tokens[mark.start :])
        # Row r, the hidden state of token r, predicts token r + 1.
        low, high = max(first_row, computed), min(len(prompt), after)
        if low < high:
            offset = int(runner.query_start_loc.np[runner.input_batch.req_id_to_index[request_id]]) - computed
            rows.append(torch.arange(offset + low, offset + high))
            targets.extend(tokens[low + 1 : high + 1])
            kept = state.in_progress_prompt_logprobs_cpu.logprobs
            places.append(kept[low - first_row : high - first_row, 0])
        if after >= len(prompt):
            finished[request_id] = state.in_progress_prompt_logprobs_cpu
            state.in_progress_prompt_logprobs_cpu = None
    if rows:
        at_once = max(1, _LOGITS_AT_ONCE // runner.model_config.get_vocab_size())
        found = row_logprobs(
            runner.model.compute_logits, hidden_states, torch.cat(rows), torch.tensor(targets), at_once
        )
        begin = 0
        for place in places:
            place.copy_(found[begin : begin + len(place)])
            begin += len(place)
    return finished


def row_logprobs(compute_logits: Any, hidden_states: Tensor, rows: Tensor, targets: Tensor, at_once: int) -> Tensor:
    """Log-probs, float32 [tokens] on the CPU, of `targets` [tokens] after the hidden states `rows` [tokens].

    The lm_head sees `at_once` rows in a call.
    """
    device = hidden_states.device
    rows, targets = rows.to(device), targets.to(device)
    found = []
    for begin in range(0, len(rows), at_once):
        chosen = slice(begin, begin + at_once)
        logits = compute_logits(hidden_states[rows[chosen]]).float()
        found.append(logits.gather(1, targets[chosen, None])[:, 0] - logits.logsumexp(-1))
    return torch.cat(found).cpu()


def _mark(runner: Any, request_id: str) -> SpanMark | None:
    """The mark of a scoring request that this runner serves; None for any other."""
    state = runner.requests[request_id]
    if state.prompt_token_ids is None:  # embeddings instead of tokens
        return None
    mark = read_mark(state.sampling_params, len(state.prompt_token_ids))
    if mark is None or mark.last is None or mark.last >= runner.model_config.get_vocab_size():
        return None
    return mark


def _no_rows_yet(tokens: list[int]) -> Any:
    from vllm.v1.outputs import LogprobsTensors

    return LogprobsTensors(
        logprob_token_ids=torch.tensor(tokens, dtype=torch.int32)[:, None],
        logprobs=torch.full((len(tokens), 1), float("nan")),
        selected_token_ranks=torch.zeros(len(tokens), dtype=torch.int32),
    )
