"""Cleaning: what is mended, what is dropped and under which one reason, and what a kept row looks like."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepcredit.countdown.puzzle import Puzzle
from stepcredit.countdown.verifier import grade
from stepcredit.data.cleaning import DROP_REASONS, OPERATORS, Dropped, Funnel, clean, clean_row
from stepcredit.data.rows import RawRow, read_rows

SHARED = Path(__file__).parents[2].parent / "shared"
PUZZLE = Puzzle(nums=(3, 5, 2), target=16)


def raw(response: str, query: str = "") -> RawRow:
    return RawRow(None, None, query, response) if query else RawRow(PUZZLE.nums, PUZZLE.target, "", response)


def answered(answer: str) -> RawRow:
    return raw(f"<think>Try.</think>\n<answer>{answer}</answer>")


def kept_answer(answer: str) -> str:
    completion = clean_row(answered(answer)).completion
    return completion.removeprefix("<reasoning>Try.</reasoning>\n<solution>").removesuffix("</solution>")


def drop_reason(row: RawRow) -> str:
    with pytest.raises(Dropped) as caught:
        clean_row(row)
    return caught.value.reason


def test_a_row_is_rewritten_with_nothing_outside_the_two_elements() -> None:
    row = clean_row(raw("Intro <think>\nOne.\n\nTwo.\n</think> so <answer> (3+5)*2 </answer> Done!"))
    assert row.prompt == "Numbers: 3 5 2\nTarget: 16\n"
    assert row.completion == "<reasoning>One.\n\nTwo.</reasoning>\n<solution>(3+5)*2</solution>"
    assert grade(row.completion, PUZZLE).reward == 1.0


@pytest.mark.parametrize(
    "response",
    [
        "One.\n\nTwo.\n\n<answer>(3+5)*2</answer>",
        "<think>One.\n\nTwo.</think><answer>(3+5)*2</answer>",
        "<reasoning>One.\n\nTwo.</reasoning>\n<solution>(3+5)*2</solution>",
        "<think>One.\n\nTwo.</think><solution>(3+5)*2</solution>",
        "<think>One.\r\n \t\r\n\r\nTwo.</think><answer>(3+5)*2</answer>",
        "<think>\n\n\nOne.\n  \n\n\nTwo.\n\n</think><answer>(3+5)*2</answer>",
    ],
)
def test_reasoning_and_answer_are_found_in_every_known_form(response: str) -> None:
    completion = clean_row(raw(response)).completion
    assert completion == "<reasoning>One.\n\nTwo.</reasoning>\n<solution>(3+5)*2</solution>"


def test_reasoning_keeps_its_own_operators_and_line_breaks() -> None:
    completion = clean_row(raw("Try 3 × 5:\n  that is 15\n\nNo.<answer>(3+5)*2</answer>")).completion
    assert completion.startswith("<reasoning>Try 3 × 5:\n  that is 15\n\nNo.</reasoning>")


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        ("(3 + 5) × 2", "(3 + 5) * 2"),
        ("(3 + 5) ÷ 2", None),
        ("(3 + 5) · 2", "(3 + 5) * 2"),
        ("(3 ＋ 5) ∗ 2", "(3 + 5) * 2"),
        ("(3 + 5) * 2 = 16", "(3 + 5) * 2"),
        ("(3 + 5) * 2 = 16.", "(3 + 5) * 2"),
        ("(3 + 5) × 2 = 8 × 2 = 16 ✓", "(3 + 5) * 2"),
        ("(3 + 5) * 2 = 17", "(3 + 5) * 2"),
        ("(3\n+\t5)  *  2", "(3 + 5) * 2"),
    ],
)
def test_operators_and_tails_are_mended(answer: str, kept: str | None) -> None:
    if kept is None:
        assert drop_reason(answered(answer)) == "wrong value"
    else:
        assert kept_answer(answer) == kept


@pytest.mark.parametrize("sign", [sign for signs in OPERATORS.values() for sign in signs])
def test_every_listed_operator_is_written_in_ascii(sign: str) -> None:
    ascii_ = next(ascii_ for ascii_, signs in OPERATORS.items() if sign in signs)
    target = {"+": 8, "-": 4, "*": 12, "/": 3}[ascii_]
    row = RawRow((6, 2), target, "", f"<answer>6{sign}2</answer>")
    assert clean_row(row).completion == f"<reasoning></reasoning>\n<solution>6{ascii_}2</solution>"


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ("", "no response"),
        (" \n", "no response"),
        ("Hm.", "no answer element"),
        ("<ANSWER>(3+5)*2</ANSWER>", "no answer element"),
        ("<answer>(3+5)*2</answer> or <answer>2*(3+5)</answer>", "several answer elements"),
        ("<answer>(3+5)*2<answer>", "several answer elements"),
        ("<answer>(3+5)*2", "broken tags"),
        ("(3+5)*2</answer>", "broken tags"),
        ("</answer>(3+5)*2<answer>", "broken tags"),
        ("<think>a<answer>(3+5)*2</answer>", "broken tags"),
        ("a</think><answer>(3+5)*2</answer>", "broken tags"),
        ("</think>a<think><answer>(3+5)*2</answer>", "broken tags"),
        ("<think>a<think>b</think><answer>(3+5)*2</answer>", "broken tags"),
        ("<reasoning>a<solution>(3+5)*2</solution>", "broken tags"),
        ("a</reasoning><solution>(3+5)*2</solution>", "broken tags"),
        ("<think>put it in <solution> tags</think><answer>(3+5)*2</answer>", "tag in the reasoning"),
        ("I write <reasoning> first. <answer>(3+5)*2</answer>", "tag in the reasoning"),
        ("<reasoning>a<reasoning>b</reasoning><solution>(3+5)*2</solution>", "tag in the reasoning"),
        ("<answer> </answer>", "empty answer"),
        ("<answer>= 16</answer>", "empty answer"),
        ("<answer>$(3+5)*2$</answer>", "LaTeX in the answer"),
        ("<answer>(3+5) \\times 2</answer>", "LaTeX in the answer"),
        ("<answer>\\frac{32}{2}</answer>", "LaTeX in the answer"),
        ("<answer>(３+5)*2</answer>", "other characters in the answer"),
        ("<answer>(3+5)x2</answer>", "other characters in the answer"),
        ("<answer>3.5*2</answer>", "other characters in the answer"),
        ("<answer>(3+5)*2 ≈ 16</answer>", "other characters in the answer"),
        ("<answer>3+5, 8*2</answer>", "other characters in the answer"),
        (f"<answer>{'(' * 1500}16{')' * 1500}</answer>", "answer too long"),
        ("<answer>2(3+5)</answer>", "not an expression"),
        ("<answer>2**3+5</answer>", "not an expression"),
        ("<answer>-3+5*2</answer>", "not an expression"),
        ("<answer>(03+5)*2</answer>", "not an expression"),
        ("<answer>16 = (3+5)*2</answer>", "number not given"),
        ("<answer>(3+5)*2*1</answer>", "number not given"),
        ("<answer>35-2</answer>", "number not given"),
        ("<answer>(3+5)*2+2-2</answer>", "number reused"),
        ("<answer>3*5</answer>", "number missing"),
        ("<answer>3/(5-5)*2</answer>", "number reused"),
        ("<answer>(3-5)*2</answer>", "wrong value"),
    ],
    ids=lambda value: value[:40],
)
def test_a_dropped_row_has_the_first_reason_that_applies(response: str, reason: str) -> None:
    assert drop_reason(raw(response)) == reason


def test_division_by_zero_is_dropped_and_not_raised() -> None:
    row = RawRow((5, 3, 3), 5, "", "<answer>5/(3-3)</answer>")
    assert drop_reason(row) == "division by zero"


@pytest.mark.parametrize(("nums", "target"), [((), 16), ((3, -5, 2), 16), ((0, 16), 16), (None, 16), ((3, 5, 2), None)])
def test_columns_that_are_no_puzzle_are_counted_and_the_prompt_does_not_replace_them(
    nums: tuple[int, ...] | None, target: int | None
) -> None:
    query = "Using the numbers [3, 5, 2], create an equation that equals 16."
    assert drop_reason(RawRow(nums, target, query, "<answer>(3+5)*2</answer>")) == "puzzle unreadable"


def test_the_puzzle_is_read_from_the_prompt_where_there_are_no_columns() -> None:
    query = "Using the numbers [3, 5, 2], create an equation that equals 16."
    assert clean_row(raw("<answer>(3+5)*2</answer>", query)).puzzle == PUZZLE
    assert drop_reason(raw("<answer>(3+5)*2</answer>", "Do something.")) == "puzzle unreadable"


def test_funnel_counts_each_row_once_and_names_every_reason() -> None:
    rows = [
        answered("(3+5)*2"),
        answered("(3+5)×2"),
        answered("3*5"),
        answered("$3$"),
        raw(""),
        answered("3+5+2"),
        answered("5+3+2"),
    ]
    funnel = Funnel()
    kept = list(clean(rows, funnel))
    stages = dict(funnel.stages())
    assert len(kept) == 2
    assert stages["read"] == 7
    assert stages["kept"] == 2
    assert stages["wrong value"] == 2
    assert stages["number missing"] == stages["LaTeX in the answer"] == stages["no response"] == 1
    assert [stage for stage, _ in funnel.stages()] == ["read", *DROP_REASONS, "kept"]
    assert sum(stages[reason] for reason in DROP_REASONS) + stages["kept"] == stages["read"]


tags = [
    "<think>",
    "</think>",
    "<answer>",
    "</answer>",
    "<reasoning>",
    "</reasoning>",
    "<solution>",
    "</solution>",
]
pieces = st.sampled_from([*tags, "(3+5)*2", "3", "+", "×", " = 16", "\n\n", "\r\n", "$", "a"])


@settings(max_examples=400)
@given(st.lists(pieces, max_size=14).map("".join))
def test_any_response_is_kept_with_reward_one_or_dropped_for_a_stated_reason(response: str) -> None:
    funnel = Funnel()
    for row in clean([raw(response)], funnel):
        assert grade(row.completion, row.puzzle).reward == 1.0
    assert set(funnel.dropped) <= set(DROP_REASONS)
    assert funnel.read == 1


@pytest.mark.skipif(not SHARED.exists(), reason="real traces are kept beside the project")
def test_real_traces_pass_from_columns_and_from_their_prompts(tmp_path: Path) -> None:
    path = SHARED / "data" / "countdown_traces.jsonl"
    funnel = Funnel()
    kept = list(clean(read_rows(path), funnel))
    assert funnel.read == 1500
    assert len(kept) == 1500
    assert all(grade(row.completion, row.puzzle).reward == 1.0 for row in kept)
    hub = tmp_path / "hub.jsonl"
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    hub.write_text("".join(json.dumps({"query": row["prompt"], "response_ws": row["response"]}) + "\n" for row in rows))
    assert list(clean(read_rows(hub), Funnel())) == kept
