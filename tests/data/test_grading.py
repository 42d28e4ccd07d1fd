"""Grading JSON lines: keys kept in order, one line at a time, bad rows named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepcredit.countdown.verifier import REASONS
from stepcredit.data.grading import grade_lines
from stepcredit.provenance.errors import UserError

SHARED = Path(__file__).parents[2].parent / "shared"
RIGHT = "<reasoning>a</reasoning>\n<solution>(3+5)*2</solution>"


def line(**changes: object) -> bytes:
    row: dict[str, object] = {"nums": [3, 5, 2], "target": 16, "completion": RIGHT}
    return json.dumps(row | changes).encode()


def grade_one(text: bytes) -> dict[str, object]:
    (out,) = grade_lines([text], "in.jsonl")
    return json.loads(out)


def test_reward_answer_and_reason_are_added_and_other_keys_kept_in_order() -> None:
    row = {
        "id": "é×",
        "nums": [3, 5, 2],
        "more": {"b": [1.5, None], "a": 1},
        "target": 16,
        "completion": RIGHT,
    }
    graded = grade_one(json.dumps(row).encode())
    assert list(graded) == ["id", "nums", "more", "target", "completion", "reward", "answer", "reason"]
    assert graded == row | {"reward": 1.0, "answer": "(3+5)*2", "reason": "correct"}


def test_nothing_submitted_is_a_null_answer() -> None:
    graded = grade_one(line(completion="(3+5)*2"))
    assert (graded["reward"], graded["answer"], graded["reason"]) == (0.0, None, "malformed")


def test_lines_are_graded_as_they_come_and_blank_ones_passed_over() -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield line() + b"\r\n"
            yield b"\n"

    graded = grade_lines(endless(), "in.jsonl")
    assert [json.loads(next(graded))["reward"] for _ in range(3)] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "recursion"),
        (b"[1, 2]", "not a JSON object"),
        (b'"text"', "not a JSON object"),
        (b"{}", "no nums and no target and no completion"),
        (b'{"nums": [3, 5], "completion": ""}', "no target"),
        (line(nums="3 5 2"), "nums"),
        (line(nums=[3, "5"]), "nums"),
        (line(nums=[3, 5.0]), "nums"),
        (line(nums=[3, True]), "nums"),
        (line(nums=[]), "nums"),
        (line(nums=[0, 3]), "positive"),
        (line(target="16"), "target"),
        (line(target=None), "target"),
        (line(completion=None), "completion"),
        (line(completion=["a"]), "completion"),
        (line()[:-1] + b', "x": NaN}', "not JSON"),
        (line()[:-1] + b', "x": 1e999}', "not JSON"),
        (line(target=1)[:-2] + b"9" * 5000 + b"}", "not JSON"),
    ],
    ids=lambda value: value[:30],
)
def test_a_bad_row_stops_with_its_line_and_what_to_do(bad: bytes, message: str) -> None:
    graded = grade_lines([line(), b"\n", bad, line()], "in.jsonl")
    next(graded)
    with pytest.raises(UserError, match=message) as caught:
        next(graded)
    assert str(caught.value).startswith("in.jsonl: line 3: ")
    assert "give one JSON object a line" in str(caught.value)


def test_half_a_surrogate_pair_survives() -> None:
    completion = "<reasoning>\ud83d</reasoning><solution>3+5</solution>"
    graded = grade_one(line(completion=completion, target=8))
    assert graded["completion"] == completion
    assert graded["reward"] == 1.0


@pytest.mark.skipif(not SHARED.exists(), reason="real completions are kept beside the project")
def test_real_completions_are_all_graded() -> None:
    with (SHARED / "data" / "model_outputs.jsonl").open("rb") as stream:
        graded = [json.loads(out) for out in grade_lines(stream, "model_outputs.jsonl")]
    assert len(graded) == 1200
    assert {row["reason"] for row in graded} <= set(REASONS)
    # In the tags that the verifier asks for, the same answers are graded for what they say.
    tags = (("<answer>", "</reasoning><solution>"), ("</answer>", "</solution>"))
    for row in graded:
        text = "<reasoning>" + row["completion"].replace(tags[0][0], tags[0][1]).replace(*tags[1])
        row["completion"] = text
    regraded = [grade_one(json.dumps(row).encode()) for row in graded]
    assert sum(row["reward"] == 1.0 for row in regraded) > 100
