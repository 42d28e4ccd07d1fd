"""The endpoint's request body: every mistake is refused with a reason, and nothing else is."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepcredit.scoring.vllm_plugin.batch import BadRequestError, BatchLimits, pack_tokens, read_batch
from stepcredit.scoring.vllm_plugin.settings import PluginSettings, read_settings

LIMITS = BatchLimits(max_sequences=4, max_length=10, vocabulary=50)


def read(**fields: Any) -> Any:
    return read_batch(json.dumps(fields).encode(), LIMITS)


def test_sequences_are_cut_at_the_end_of_their_span() -> None:
    batch = read(token_ids=[[1, 2, 3, 4], [5, 6]], target_spans=[[1, 3], [1, 2]], use_cache=False)
    assert batch.sequences == [[1, 2, 3], [5, 6]]
    assert batch.starts == [1, 1]
    assert batch.use_cache is False


def test_packed_and_listed_tokens_mean_the_same() -> None:
    sequences = [[1, 2, 3], [49, 0], [7, 7, 7, 7, 7, 7, 7, 7, 7, 7]]
    spans = [[1, 3], [1, 2], [4, 10]]
    assert read(**pack_tokens(sequences), target_spans=spans) == read(token_ids=sequences, target_spans=spans)


ONE = {"token_ids": [[1, 2, 3]], "target_spans": [[1, 3]]}
PACKED = {**pack_tokens([[1, 2, 3]]), "target_spans": [[1, 3]]}
SPANS = {"target_spans": [[1, 3]]}
HUGE_INTEGER = 10**40

MALFORMED: list[tuple[str, dict[str, Any], str]] = [
    ("no fields", {}, "target_spans"),
    ("no tokens", SPANS, "token_ids"),
    ("both forms", {**ONE, **PACKED}, "either"),
    ("unknown key", {**ONE, "spans": 1}, "'spans'"),
    ("no spans", {"token_ids": [[1, 2]], "target_spans": []}, "at least one"),
    ("spans null", {**ONE, "target_spans": None}, "target_spans"),
    ("span of one bound", {**ONE, "target_spans": [[1]]}, r"target_spans\[0\]"),
    ("span of three bounds", {**ONE, "target_spans": [[1, 2, 3]]}, r"target_spans\[0\]"),
    ("span of floats", {**ONE, "target_spans": [[1.0, 2.0]]}, r"target_spans\[0\]"),
    ("span of booleans", {**ONE, "target_spans": [[True, 2]]}, r"target_spans\[0\]"),
    ("span of text", {**ONE, "target_spans": ["12"]}, r"target_spans\[0\]"),
    ("span from 0", {**ONE, "target_spans": [[0, 2]]}, "starts at 0"),
    ("negative start", {**ONE, "target_spans": [[-1, 2]]}, "no span"),
    ("empty span", {**ONE, "target_spans": [[2, 2]]}, "no span"),
    ("reversed span", {**ONE, "target_spans": [[3, 1]]}, "no span"),
    ("span past the end", {**ONE, "target_spans": [[1, 4]]}, "no span"),
    ("span behind the end", {**ONE, "target_spans": [[3, 4]]}, "no span"),
    ("huge span", {**ONE, "target_spans": [[1, HUGE_INTEGER]]}, "no span"),
    ("more spans than sequences", {**ONE, "target_spans": [[1, 2], [1, 2]]}, "1 sequences but 2"),
    ("fewer spans than sequences", {"token_ids": [[1, 2], [1, 2]], **SPANS}, "2 sequences but 1"),
    ("too many sequences", {"token_ids": [[1, 2]] * 5, "target_spans": [[1, 2]] * 5}, "too many"),
    ("sequence too long", {"token_ids": [[1] * 11], **SPANS}, "limit is 10"),
    ("empty sequence", {"token_ids": [[]], **SPANS}, "at least one"),
    ("sequence null", {"token_ids": [None], **SPANS}, r"token_ids\[0\]"),
    ("tokens of text", {"token_ids": [["a", "b", "c"]], **SPANS}, "whole numbers"),
    ("tokens as a string", {"token_ids": "abc", **SPANS}, "list of lists"),
    ("tokens of floats", {"token_ids": [[1.0, 2.0, 3.0]], **SPANS}, "whole numbers"),
    ("tokens of booleans", {"token_ids": [[True, 2, 3]], **SPANS}, "whole numbers"),
    ("nested tokens", {"token_ids": [[[1], 2, 3]], **SPANS}, "whole numbers"),
    ("flat tokens", {"token_ids": [1, 2, 3], **SPANS}, r"3 sequences|token_ids\[0\]"),
    ("negative token", {"token_ids": [[1, -1, 3]], **SPANS}, "outside 0..49"),
    ("token outside the vocabulary", {"token_ids": [[1, 2, 50]], **SPANS}, "outside 0..49"),
    ("huge token", {"token_ids": [[1, HUGE_INTEGER, 3]], **SPANS}, "outside 0..49"),
    ("bad token behind the span", {"token_ids": [[1, 2, 50]], "target_spans": [[1, 2]]}, "outside 0..49"),
    ("use_cache as text", {**ONE, "use_cache": "no"}, "use_cache"),
    ("use_cache as number", {**ONE, "use_cache": 1}, "use_cache"),
    ("use_cache null", {**ONE, "use_cache": None}, "use_cache"),
    ("lengths with lists", {**ONE, "lengths": [3]}, "without lengths"),
    ("packed without lengths", {**PACKED, "lengths": None}, "lengths"),
    ("lengths too short", {**PACKED, "lengths": [2]}, "12 bytes"),
    ("lengths negative", {**PACKED, "lengths": [4, -1]}, "above 0"),
    ("lengths of booleans", {**PACKED, "lengths": [True]}, "above 0"),
    ("lengths huge", {**PACKED, "lengths": [HUGE_INTEGER]}, "bytes"),
    ("no base64", {**PACKED, "token_ids_base64": "***"}, "base64"),
    ("base64 of half a token", {**PACKED, "token_ids_base64": base64.b64encode(b"123").decode()}, "3 bytes"),
    ("packed as a list", {**PACKED, "token_ids_base64": [1]}, "string"),
    ("packed as non-ASCII", {**PACKED, "token_ids_base64": "é"}, "base64"),
]


@pytest.mark.parametrize(("fields", "reason"), [case[1:] for case in MALFORMED], ids=[case[0] for case in MALFORMED])
def test_a_mistake_is_refused_with_its_reason(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadRequestError, match=reason) as caught:
        read(**fields)
    assert 400 <= caught.value.status < 500


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b"\xff\xfe",
        b'{"token_ids": [[1, NaN, 3]], "target_spans": [[1, 3]]}',
        b'{"token_ids": [[1, 2, 3]], "target_spans": [[1, Infinity]]}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(BadRequestError):
        read_batch(body, LIMITS)


def test_nothing_random_is_scored_as_something_else() -> None:
    """Bodies with one random change: refused, or exactly the span that the body still says."""
    draw = random.Random(0)
    junk: list[Any] = [None, True, -1, 0, 2, 7, 99, 1.5, "x", [], [1], [[1, 2]], {}, HUGE_INTEGER]
    refused = 0
    for _ in range(2000):
        fields: dict[str, Any] = {"token_ids": [[1, 2, 3, 4], [5, 6, 7]], "target_spans": [[1, 3], [2, 3]]}
        where = fields[draw.choice(["token_ids", "target_spans"])]
        if draw.random() < 0.5:
            where = where[draw.randrange(2)]
        where[draw.randrange(len(where))] = draw.choice(junk)
        try:
            batch = read(**fields)
        except BadRequestError:
            refused += 1
            continue
        for index in range(2):
            start, end = fields["target_spans"][index]
            assert batch.sequences[index] == fields["token_ids"][index][:end]
            assert batch.starts[index] == start
            assert 1 <= start < end <= len(fields["token_ids"][index])
    assert 1000 < refused < 2000


def test_packed_tokens_are_little_endian_int32() -> None:
    packed = pack_tokens([[1, 256]])
    assert base64.b64decode(packed["token_ids_base64"]) == b"\x01\0\0\0\0\x01\0\0"
    assert np.frombuffer(base64.b64decode(packed["token_ids_base64"]), "<i4").tolist() == [1, 256]


def test_limits_come_from_the_environment() -> None:
    assert read_settings({}) == PluginSettings()
    changed = read_settings({"STEPCREDIT_MAX_SEQUENCES": "7", "STEPCREDIT_MAX_BODY_MIB": "2"})
    assert (changed.max_sequences, changed.max_body_bytes) == (7, 2 * 2**20)
    assert read_settings({"STEPCREDIT_ALLOW_UPDATES": "1"}).allow_updates


@pytest.mark.parametrize("value", ["", "-1", "0", "many", "1.5"])
def test_a_limit_that_is_no_number_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="STEPCREDIT_MAX_SEQUENCES"):
        read_settings({"STEPCREDIT_MAX_SEQUENCES": value})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=12,
)
bodies = (
    st.binary(max_size=60)
    | json_values.map(lambda value: json.dumps(value).encode())
    | st.fixed_dictionaries(
        {},
        optional={
            "token_ids": json_values | st.lists(st.lists(st.integers(-1, 51), max_size=12), max_size=5),
            "target_spans": json_values | st.lists(st.lists(st.integers(-1, 12), max_size=3), max_size=5),
            "token_ids_base64": json_values | st.binary(max_size=40).map(lambda raw: base64.b64encode(raw).decode()),
            "lengths": json_values | st.lists(st.integers(-1, 12), max_size=5),
            "use_cache": json_values,
        },
    ).map(lambda fields: json.dumps(fields).encode())
)


@settings(max_examples=1000, deadline=None)
@given(bodies)
def test_any_body_is_refused_or_is_a_batch_within_the_limits(body: bytes) -> None:
    try:
        batch = read_batch(body, LIMITS)
    except BadRequestError as error:
        refused = (400 <= error.status < 500, bool(str(error)))
    else:
        refused = None
    if refused is not None:
        assert refused == (True, True)
        return
    assert 1 <= len(batch.sequences) == len(batch.starts) <= LIMITS.max_sequences
    for sequence, start in zip(batch.sequences, batch.starts, strict=True):
        assert 1 <= start < len(sequence) <= LIMITS.max_length
        assert all(type(token) is int and 0 <= token < LIMITS.vocabulary for token in sequence)
