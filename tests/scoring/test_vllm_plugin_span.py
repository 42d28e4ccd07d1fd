"""How a scoring travels through vLLM: a mark that any client could forge, and both model runners' rows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from stepcredit.scoring.vllm_plugin.cache_cap import look_up
from stepcredit.scoring.vllm_plugin.span import (
    MALFORMED,
    SPAN_KEY,
    SpanMark,
    longest_sequence,
    read_mark,
    span_logprob,
    submission,
)
from stepcredit.scoring.vllm_plugin.span_rows import row_logprobs, score_spans


def parameters(mark: Any) -> Any:
    return SimpleNamespace(extra_args={SPAN_KEY: mark})


def test_a_request_without_a_mark_is_none_of_ours() -> None:
    assert read_mark(None, 5) is None
    assert read_mark(SimpleNamespace(extra_args=None), 5) is None
    assert read_mark(SimpleNamespace(extra_args={"kv_transfer_params": {}}), 5) is None


def test_marks_inside_the_prompt_are_read() -> None:
    assert read_mark(parameters([1]), 5) == SpanMark(1, None)
    assert read_mark(parameters([4]), 5) == SpanMark(4, None)
    assert read_mark(parameters([5, 7]), 5) == SpanMark(5, 7)  # the last token alone, right after the prompt


@pytest.mark.parametrize(
    "mark",
    [
        0,
        3,
        None,
        "3",
        [],
        [0],
        [-1],
        [5],
        [6, 1],
        [0, 1],
        [1.0],
        [True],
        ["1"],
        [1, -1],
        [1, True],
        [1, 2, 3],
        {"a": 1},
    ],
)
def test_a_forged_mark_turns_the_cache_off_instead_of_crashing_the_engine(mark: Any) -> None:
    assert read_mark(parameters(mark), 5) == MALFORMED
    manager = SimpleNamespace(empty_kv_cache_blocks="empty")
    assert look_up(manager, None, MALFORMED.start - 1) == ("empty", 0, 0)


def test_the_v1_runner_does_not_compute_the_last_token() -> None:
    request = submission([5, 6, 7, 8], 2, use_cache=True, v2_runner=False)
    assert request.prompt == [5, 6, 7]
    assert request.targets == [7, 8]
    assert request.parameters.extra_args == {SPAN_KEY: [2, 8]}
    assert request.parameters.skip_reading_prefix_cache is False
    assert request.parameters.max_tokens == 1
    assert longest_sequence(10, v2_runner=False) == 10


def test_without_the_cache_its_reads_are_skipped() -> None:
    assert submission([5, 6], 1, use_cache=False, v2_runner=False).parameters.skip_reading_prefix_cache is True


def flat_output(logprobs: list[float], tokens: list[int]) -> Any:
    return SimpleNamespace(prompt_logprobs=SimpleNamespace(logprobs=logprobs, token_ids=tokens))


def row_output(logprobs: list[float]) -> Any:
    return SimpleNamespace(prompt_token_id_logprobs=np.array(logprobs)[:, None])


@pytest.mark.parametrize("values", [[], [-1.0], [-1.0, -2.0, -3.0], [-1.0, float("nan")], [-1.0, float("-inf")]])
def test_a_missing_or_infinite_row_is_no_score(values: list[float]) -> None:
    assert span_logprob(flat_output(values, [7, 8, 9][: len(values)]), [7, 8], v2_runner=False) is None
    assert span_logprob(row_output(values), [7, 8], v2_runner=True) is None


def test_rows_are_summed() -> None:
    assert span_logprob(flat_output([-1.0, -2.5], [7, 8]), [7, 8], v2_runner=False) == -3.5
    assert span_logprob(row_output([-1.0, -2.5]), [7, 8], v2_runner=True) == -3.5


def test_no_rows_at_all_are_no_score() -> None:
    assert span_logprob(SimpleNamespace(prompt_logprobs=None), [7, 8], v2_runner=False) is None
    assert span_logprob(SimpleNamespace(prompt_token_id_logprobs=None), [7, 8], v2_runner=True) is None


def test_the_rows_of_a_worker_without_the_plugin_are_no_score() -> None:
    """It answers for the prompt 5 6 7 where the span of 5 6 7 8 from 2 was asked for: as many rows, other tokens."""
    assert span_logprob(flat_output([-1.0, -2.5], [6, 7]), [7, 8], v2_runner=False) is None


# -- the rows of either runner: hidden states are the positions, the lm_head is a table ------------------

VOCABULARY = 11
TABLE = torch.randn(20, VOCABULARY, generator=torch.Generator().manual_seed(0))
TOKENS = [3, 1, 4, 1, 5, 9, 2, 6]
START = 3
EXPECTED = float(sum(TABLE.log_softmax(-1)[position - 1, TOKENS[position]] for position in range(START, len(TOKENS))))


def lm_head(hidden: torch.Tensor) -> torch.Tensor:
    return TABLE[hidden[:, 0].long()]


def hidden_states(first: int, last: int) -> torch.Tensor:
    return torch.arange(first, last, dtype=torch.float32)[:, None]


def test_the_lm_head_gets_its_rows_in_portions() -> None:
    sizes = []

    def counted(hidden: torch.Tensor) -> torch.Tensor:
        sizes.append(len(hidden))
        return lm_head(hidden)

    found = row_logprobs(counted, hidden_states(0, 8), torch.tensor([2, 4, 5]), torch.tensor([1, 5, 9]), at_once=2)
    torch.testing.assert_close(found, TABLE.log_softmax(-1)[[2, 4, 5], [1, 5, 9]])
    assert sizes == [2, 1]


def run_v1(chunks: list[tuple[int, int]]) -> float | None:
    """Push prefill chunks (first row, end) through `score_spans`, behind another request's rows."""
    request = submission(TOKENS, START, use_cache=True, v2_runner=False)
    state = SimpleNamespace(
        prompt_token_ids=request.prompt,
        sampling_params=request.parameters,
        num_computed_tokens=0,
        in_progress_prompt_logprobs_cpu=None,
    )
    runner = SimpleNamespace(
        requests={"a": state},
        input_batch=SimpleNamespace(req_id_to_index={"a": 1}),
        query_start_loc=SimpleNamespace(np=np.array([0, 5])),
        model=SimpleNamespace(compute_logits=lm_head),
        model_config=SimpleNamespace(get_vocab_size=lambda: VOCABULARY),
    )
    mark = read_mark(request.parameters, len(request.prompt))
    assert mark is not None
    finished: dict[str, Any] = {}
    for first, end in chunks:
        state.num_computed_tokens = first
        hidden = torch.cat([torch.zeros(5, 1), hidden_states(first, end)])
        finished = score_spans(runner, hidden, {"a": end - first}, {"a": mark})
    assert set(finished) == {"a"}
    rows = finished["a"]
    output = flat_output(rows.logprobs[:, 0].tolist(), rows.logprob_token_ids[:, 0].tolist())
    return span_logprob(output, request.targets, v2_runner=False)


@pytest.mark.parametrize(
    "chunks",
    [
        [(0, 7)],
        [(2, 7)],  # a cache hit as long as the cap allows
        [(0, 1), (1, 3), (3, 4), (4, 7)],  # chunked before, at and inside the span
        [(0, 4), (0, 5), (5, 7)],  # preempted inside the span, computed again from the start
        [(0, 5), (2, 7)],  # preempted, resumed from the cache
    ],
)
def test_v1_chunks_and_preemption_give_the_whole_span(chunks: list[tuple[int, int]]) -> None:
    assert run_v1(chunks) == pytest.approx(EXPECTED, abs=1e-5)


def test_v1_a_hit_past_the_start_is_no_score() -> None:
    assert run_v1([(4, 7)]) is None


def run_v2(chunks: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> float | None:
    """The same through vLLM's own `PromptLogprobsWorker` of the V2 runner, the rest of which needs a GPU.

    Its Triton kernel for the log-softmax is the only thing replaced.
    """
    from vllm.v1.worker.gpu.sample import prompt_logprob

    monkeypatch.setattr(
        prompt_logprob, "compute_token_logprobs", lambda logits, ids: logits.log_softmax(-1).gather(-1, ids)
    )
    monkeypatch.setattr(prompt_logprob, "async_tensor_h2d", lambda ids, device, dtype: torch.tensor(ids, dtype=dtype))
    request = submission(TOKENS, START, use_cache=True, v2_runner=True)
    request.parameters.prompt_logprob_token_ids = np.array(request.parameters.prompt_logprob_token_ids)
    worker = prompt_logprob.PromptLogprobsWorker(4, torch.device("cpu"))
    worker.add_request("a", 2, request.parameters)
    found: dict[str, torch.Tensor] = {}
    for first, end in chunks:
        batch = SimpleNamespace(
            req_ids=["a"],
            idx_mapping_np=np.array([2]),
            num_computed_prefill_tokens_np=np.array([first]),
            num_scheduled_tokens=np.array([end - first]),
            prefill_len_np=np.array([len(request.prompt)]),
            query_start_loc_np=np.array([0, end - first]),
        )
        lengths = np.array([0, 0, len(request.prompt), 0])
        found = worker.compute_prompt_token_id_logprobs(lm_head, hidden_states(first, end), batch, lengths)
    rows = found["a"].numpy() if "a" in found else None
    return span_logprob(SimpleNamespace(prompt_token_id_logprobs=rows), request.targets, v2_runner=True)


@pytest.mark.parametrize("chunks", [[(0, 8)], [(2, 8)], [(0, 1), (1, 3), (3, 4), (4, 8)], [(0, 5), (2, 8)]])
def test_v2_chunks_and_preemption_give_the_whole_span(
    chunks: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_v2(chunks, monkeypatch) == pytest.approx(EXPECTED, abs=1e-5)


def test_v2_a_hit_past_the_start_is_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_v2([(4, 8)], monkeypatch) is None
