"""How a scoring request travels through vLLM: the mark on its parameters, and the way to read its result.

A sequence is submitted up to the end of its span only, since later tokens do not change the span's log-probs
under a causal model. On the V1 model runner the span's last token stays behind too, and travels in the mark:
nothing is predicted from it, so there is no need to compute it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

SPAN_KEY = "stepcredit_span"
"""Key in `SamplingParams.extra_args`; the value is [start] or [start, last token]."""


@dataclass(frozen=True)
class SpanMark:
    """What marks a request as a scoring.

    Attributes:
        start: position of the span's first token, at least 1; 0 where the mark makes no sense.
        last: the span's last token, where it follows the prompt instead of ending it.
    """

    start: int
    last: int | None


MALFORMED = SpanMark(start=0, last=None)
"""A senseless mark: its request is served as if nothing were in the cache."""


def read_mark(parameters: Any, length: int) -> SpanMark | None:
    """The mark of a request; None where it is no scoring. Any client can set one, so it is not trusted.

    Args:
        parameters: the request's `SamplingParams`, or None (pooling).
        length: number of its prompt tokens.
    """
    extra = getattr(parameters, "extra_args", None)
    if not extra or SPAN_KEY not in extra:
        return None
    match extra[SPAN_KEY]:
        case [start] if type(start) is int and 1 <= start < length:
            return SpanMark(start, None)
        case [start, last] if type(start) is type(last) is int and 1 <= start <= length and last >= 0:
            return SpanMark(start, last)
    return MALFORMED


@dataclass(frozen=True)
class Submission:
    """What is handed to vLLM for one scoring.

    Attributes:
        prompt: the prompt's tokens.
        parameters: its `SamplingParams`.
        targets: the tokens whose log-probabilities must come back.
    """

    prompt: list[int]
    parameters: Any
    targets: list[int]


def submission(tokens: Sequence[int], start: int, *, use_cache: bool, v2_runner: bool) -> Submission:
    """The request that scores tokens[start:].

    The V2 model runner has the log-probs of given tokens from a given row on built in; the V1 runner refuses
    these parameters and gets its rows from `span_rows`.
    """
    from vllm.sampling_params import RequestOutputKind, SamplingParams

    rows: dict[str, Any]
    if v2_runner:
        prompt, mark = list(tokens), [start]
        wanted = [[token] for token in tokens[start:]]
        rows = {"prompt_logprob_token_ids": wanted, "prompt_logprob_start": start - 1}
    else:
        prompt, mark = list(tokens[:-1]), [start, tokens[-1]]
        rows = {"prompt_logprobs": 0, "flat_logprobs": True}
    parameters = SamplingParams(
        max_tokens=1,  # the least that vLLM accepts
        temperature=0.0,
        detokenize=False,
        output_kind=RequestOutputKind.FINAL_ONLY,
        skip_reading_prefix_cache=not use_cache,
        extra_args={SPAN_KEY: mark},
        **rows,
    )
    return Submission(prompt, parameters, list(tokens[start:]))


def longest_sequence(max_model_len: int, *, v2_runner: bool) -> int:
    """Tokens of the longest sequence that can be scored: vLLM wants room for a new token after the prompt."""
    return max_model_len - 1 if v2_runner else max_model_len


def span_logprob(output: Any, targets: Sequence[int], *, v2_runner: bool) -> float | None:
    """Sum of the log-probs of `targets` in a finished `RequestOutput`; None where one is missing or not finite."""
    values: list[float] = []
    if v2_runner:
        rows = output.prompt_token_id_logprobs
        if rows is not None and rows.shape == (len(targets), 1):
            values = rows[:, 0].tolist()
    else:
        flat = output.prompt_logprobs
        # A worker without the plugin answers with other tokens.
        if flat is not None and list(flat.token_ids) == list(targets):
            values = list(flat.logprobs)
    if len(values) != len(targets):
        return None
    total = math.fsum(values)
    return total if math.isfinite(total) else None
