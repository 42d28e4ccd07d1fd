"""The request body of the scoring endpoint: read strictly, so that a mistake is refused and never scored.

    {"token_ids": [[...], ...], "target_spans": [[start, end], ...], "use_cache": true}

or, smaller by a factor of about two and quicker to read, with the token ids of all sequences one after the
other as little-endian int32 in base64:

    {"token_ids_base64": "...", "lengths": [...], "target_spans": [[start, end], ...], "use_cache": true}

A span is half open. It starts at 1 at the earliest: nothing predicts a sequence's first token.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

_KEYS = {"token_ids", "token_ids_base64", "lengths", "target_spans", "use_cache"}


class BadRequestError(ValueError):
    """The request is wrong; `status` is the HTTP status that says so."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class BatchLimits:
    """What a batch must keep to.

    Attributes:
        max_sequences: number of sequences.
        max_length: tokens of one sequence.
        vocabulary: token ids are below this.
    """

    max_sequences: int
    max_length: int
    vocabulary: int


@dataclass(frozen=True)
class SpanBatch:
    """Sequences to score. Sequence i is cut at the end of its span: the span is sequences[i][starts[i]:]."""

    sequences: list[list[int]]
    starts: list[int]
    use_cache: bool


def read_batch(body: bytes, limits: BatchLimits) -> SpanBatch:
    """Raises:
    BadRequestError: the body is not JSON, has a key too many or too few, or breaks a limit; the message says
    which.
    """
    fields = _json_object(body)
    unknown = sorted(set(fields) - _KEYS)
    if unknown:
        raise BadRequestError(f"unknown key {unknown[0]!r}; known keys: {', '.join(sorted(_KEYS))}")
    use_cache = fields.get("use_cache", True)
    if not isinstance(use_cache, bool):
        raise BadRequestError("use_cache must be true or false")
    spans = fields.get("target_spans")
    if not isinstance(spans, list) or not spans:
        raise BadRequestError("target_spans must be a list of [start, end] pairs, at least one")
    if len(spans) > limits.max_sequences:
        raise BadRequestError(f"{len(spans)} sequences are too many: the limit is {limits.max_sequences}", 413)
    sequences = _sequences(fields)
    if len(sequences) != len(spans):
        raise BadRequestError(f"{len(sequences)} sequences but {len(spans)} target_spans")
    cut, starts = [], []
    for index, (sequence, span) in enumerate(zip(sequences, spans, strict=True)):
        tokens = _checked_tokens(index, sequence, limits)
        start, end = _checked_span(index, span, len(tokens))
        cut.append(tokens[:end])
        starts.append(start)
    return SpanBatch(cut, starts, use_cache)


def pack_tokens(sequences: Sequence[Sequence[int]]) -> dict[str, Any]:
    """The fields `token_ids_base64` and `lengths` of a request for these sequences."""
    flat = np.concatenate([np.asarray(sequence, dtype="<i4") for sequence in sequences])
    return {
        "token_ids_base64": base64.b64encode(flat.tobytes()).decode(),
        "lengths": [len(s) for s in sequences],
    }


def _json_object(body: bytes) -> dict[str, Any]:
    def refuse(constant: str) -> NoReturn:
        raise BadRequestError(f"the body holds {constant}, which is not JSON")

    try:
        fields = json.loads(body, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        if isinstance(error, BadRequestError):
            raise
        raise BadRequestError(f"the body is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise BadRequestError("the body must be a JSON object")
    return fields


def _sequences(fields: dict[str, Any]) -> list[Any]:
    """The sequences of either form; those of the list form are unchecked yet."""
    listed, packed, lengths = (fields.get(key) for key in ("token_ids", "token_ids_base64", "lengths"))
    if (listed is None) == (packed is None):
        raise BadRequestError("give either token_ids, or token_ids_base64 with lengths")
    if listed is not None:
        if not isinstance(listed, list) or lengths is not None:
            raise BadRequestError("token_ids must be a list of lists, without lengths")
        return listed
    if not isinstance(lengths, list) or not all(type(length) is int and length > 0 for length in lengths):
        raise BadRequestError("lengths must be a list of whole numbers above 0, one for each sequence")
    if not isinstance(packed, str):
        raise BadRequestError("token_ids_base64 must be a string")
    try:
        raw = base64.b64decode(packed, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadRequestError(f"token_ids_base64 is not base64: {error}") from None
    if len(raw) != 4 * sum(lengths):
        raise BadRequestError(f"token_ids_base64 holds {len(raw)} bytes, lengths ask for {4 * sum(lengths)}")
    flat = np.frombuffer(raw, dtype="<i4")
    return [part.tolist() for part in np.split(flat, np.cumsum(lengths)[:-1])]


def _checked_span(index: int, span: Any, length: int) -> tuple[int, int]:
    if not isinstance(span, list) or len(span) != 2 or not all(type(bound) is int for bound in span):
        raise BadRequestError(f"target_spans[{index}] must be [start, end], two whole numbers")
    start, end = span
    if start == 0:
        raise BadRequestError(f"target_spans[{index}] starts at 0, and nothing predicts a first token: start at 1")
    if not 1 <= start < end <= length:
        raise BadRequestError(
            f"target_spans[{index}] is [{start}, {end}], no span inside a sequence of {length} tokens"
        )
    return start, end


def _checked_tokens(index: int, sequence: Any, limits: BatchLimits) -> list[int]:
    if not isinstance(sequence, list) or not all(type(token) is int for token in sequence) or not sequence:
        raise BadRequestError(f"token_ids[{index}] must be a list of whole numbers, at least one")
    if len(sequence) > limits.max_length:
        raise BadRequestError(f"sequence {index} has {len(sequence)} tokens: the limit is {limits.max_length}")
    if not 0 <= min(sequence) <= max(sequence) < limits.vocabulary:
        raise BadRequestError(f"sequence {index} has a token id outside 0..{limits.vocabulary - 1}")
    return sequence
