"""Where paragraphs begin and end, for tokens of every shape."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepcredit.credit.paragraphs import split_paragraphs
from stepcredit.modeling.tokenizer import TextCodec, build_tokenizer

CLOSE = "</reasoning>"
OPEN = "<reasoning>"
TAIL = [CLOSE, "\n", "<solution>", "8", "</solution>", ""]


def texts(pieces: list[str], guard: int | None = None) -> list[str]:
    return ["".join(pieces[start:end]) for start, end in split_paragraphs(pieces, guard).spans]


def prefixes(pieces: list[str], guard: int | None = None) -> list[str]:
    return ["".join(pieces[:length]) for length in split_paragraphs(pieces, guard).prefixes]


def test_a_blank_line_ends_a_paragraph_and_belongs_to_it() -> None:
    pieces = [OPEN, "Try", " 3", "\n\n", "Found", "\n\n", "Done", *TAIL]
    assert split_paragraphs(pieces, None).spans == ((0, 4), (4, 6), (6, 7))


def test_the_tail_belongs_to_no_paragraph() -> None:
    pieces = [OPEN, "Try", CLOSE, "\n\n", "<solution>", "8", "</solution>", "\n\n", "more", ""]
    assert texts(pieces) == [OPEN + "Try"]


@pytest.mark.parametrize(
    "blank",
    [
        ["\n\n"],
        ["\n", "\n"],
        ["\n", " ", "\t", "\n"],
        ["\n \n"],
        ["\n\n\n"],
        ["\n\n", "\n"],
        ["\n\n", " \n"],
        ["\n", "\n", "\n", "\n"],
    ],
)
def test_a_blank_line_is_one_however_it_is_spelled(blank: list[str]) -> None:
    pieces = [OPEN, "a", *blank, "b", *TAIL]
    assert texts(pieces) == [OPEN + "a" + "".join(blank), "b"]
    assert prefixes(pieces) == [OPEN, OPEN + "a", OPEN + "a" + "".join(blank) + "b"]


def test_one_newline_is_no_blank_line() -> None:
    assert texts([OPEN, "a", "\n", "b", "\n", " c", *TAIL]) == [OPEN + "a\nb\n c"]


def test_a_token_that_holds_a_blank_line_ends_its_paragraph_whatever_else_it_holds() -> None:
    pieces = [OPEN, "a", ".\n\n", "b", ".\n\nSo", " c", *TAIL]
    assert texts(pieces) == [OPEN + "a.\n\n", "b.\n\nSo", " c"]
    assert prefixes(pieces) == [OPEN, OPEN + "a.\n\n", OPEN + "a.\n\nb.\n\nSo", OPEN + "a.\n\nb.\n\nSo c"]


def test_a_token_that_holds_a_blank_line_and_the_closing_tag_is_tail() -> None:
    pieces = [OPEN, "a", "\n\n<", "/reasoning>", "\n", "<solution>"]
    assert texts(pieces) == [OPEN + "a"]
    assert split_paragraphs(pieces, None).prefixes == (1, 2)


def test_a_blank_line_before_the_closing_tag_makes_no_empty_paragraph() -> None:
    for blank in (["\n\n"], ["\n", "\n"], ["\n\n", " "], ["\n\n", "\n", " "]):
        assert texts([OPEN, "a", *blank, *TAIL]) == [OPEN + "a" + "".join(blank)]


def test_blank_lines_at_the_beginning_belong_to_the_first_paragraph() -> None:
    assert texts(["\n\n", OPEN, "a", *TAIL]) == ["\n\n" + OPEN + "a"]
    assert texts([OPEN, "\n\n", "a", "\n\n", "b", *TAIL]) == [OPEN + "\n\na\n\n", "b"]


def test_reasoning_that_is_closed_at_once_has_no_paragraph() -> None:
    split = split_paragraphs(TAIL, 4)
    assert (split.spans, split.prefixes) == ((), (0,))


def test_an_opening_tag_alone_is_a_paragraph_that_changes_nothing() -> None:
    split = split_paragraphs([OPEN, "\n\n", *TAIL], None)
    assert (split.spans, split.prefixes) == (((0, 2),), (1, 1))


def test_without_a_closing_tag_all_but_the_end_token_is_reasoning() -> None:
    assert texts([OPEN, "a", "\n\n", "b", ""]) == [OPEN + "a\n\n", "b"]
    assert texts([OPEN, "a", "\n\n", "b", "</reas"]) == [OPEN + "a\n\n", "b</reas"]
    assert texts(["a", "", "b", "", ""]) == ["ab"]
    assert texts([""]) == []


def test_the_guard_cuts_inside_a_word() -> None:
    pieces = [OPEN, "wo", "rd", "s", "\n\n", "x", *TAIL]
    assert split_paragraphs(pieces, 2).spans == ((0, 2), (2, 4), (4, 5), (5, 6))
    assert prefixes(pieces, 2) == [OPEN, OPEN + "wo", OPEN + "words", OPEN + "words", OPEN + "words\n\nx"]


def test_a_paragraph_as_long_as_the_guard_is_not_cut() -> None:
    pieces = [OPEN, "a", "b", "\n\n", "c", *TAIL]
    assert split_paragraphs(pieces, 4).spans == ((0, 4), (4, 5))
    assert split_paragraphs(pieces, 3).spans == ((0, 3), (3, 4), (4, 5))


def test_the_first_boundary_is_the_opening_tag_however_it_is_cut() -> None:
    assert prefixes(["<", "reason", "ing", ">", "a", *TAIL])[0] == OPEN
    assert prefixes(["<", "reason", "ing", ">\n", "a", *TAIL])[0] == OPEN + "\n"
    assert prefixes(["\n", OPEN, "a", *TAIL])[0] == "\n" + OPEN


def test_the_first_boundary_is_the_bare_prompt_where_the_opening_tag_stands_not_alone() -> None:
    assert split_paragraphs(["a", OPEN, "b", *TAIL], None).prefixes[0] == 0
    assert split_paragraphs(["<reasoning", ">Try", "b", *TAIL], None).prefixes[0] == 0
    assert split_paragraphs(["<reasoning", "></", "reasoning>", "\n"], None).prefixes == (0, 1)


def test_no_boundary_cuts_the_opening_tag() -> None:
    pieces = ["<", "reason", "ing", ">", "a", *TAIL]
    assert split_paragraphs(pieces, 2).prefixes == (4, 4, 4, 5)


def test_our_own_tokenizer_puts_a_blank_line_into_one_token() -> None:
    codec = TextCodec(build_tokenizer(100))
    text = f"{OPEN}Try 3 + 5 = 8.\n\nFound it.{CLOSE}\n<solution>3 + 5</solution>"
    ids = [*codec.encode(text), codec.eos_id]
    split = split_paragraphs(codec.pieces(ids), None)
    assert [codec.decode(ids[start:end]) for start, end in split.spans] == [
        f"{OPEN}Try 3 + 5 = 8.\n\n",
        "Found it.",
    ]
    assert [codec.decode(ids[:length]) for length in split.prefixes] == [
        OPEN,
        f"{OPEN}Try 3 + 5 = 8.",
        f"{OPEN}Try 3 + 5 = 8.\n\nFound it.",
    ]


fragments = st.sampled_from(
    [
        "",
        "a",
        " b",
        "\n",
        "\n\n",
        " \n",
        ".\n\n",
        "\n\n<",
        "\n\nSo",
        "\t",
        OPEN,
        CLOSE,
        "<reasoning",
        ">",
        "</",
        "x" * 9,
    ]
)


@settings(max_examples=1000, deadline=None)
@given(pieces=st.lists(fragments, max_size=30), guard=st.none() | st.integers(1, 6))
def test_paragraphs_cover_the_reasoning_exactly_once_within_the_guard(pieces: list[str], guard: int | None) -> None:
    split = split_paragraphs(pieces, guard)
    covered = [token for start, end in split.spans for token in range(start, end)]
    assert covered == list(range(len(covered)))
    assert all(start < end for start, end in split.spans)
    if guard is not None:
        assert all(end - start <= guard for start, end in split.spans)
    reasoning, tail = "".join(pieces[: len(covered)]), "".join(pieces[len(covered) :])
    assert CLOSE not in reasoning
    if CLOSE in "".join(pieces):
        assert reasoning == "".join(pieces)[: len(reasoning)]
        assert CLOSE in tail
        assert "".join(pieces).index(CLOSE) < len(reasoning) + len(pieces[len(covered)])
    else:
        assert tail == ""


@settings(max_examples=1000, deadline=None)
@given(pieces=st.lists(fragments, max_size=30), guard=st.none() | st.integers(1, 6))
def test_boundaries_never_go_back_and_lose_nothing_but_blanks(pieces: list[str], guard: int | None) -> None:
    split = split_paragraphs(pieces, guard)
    assert len(split.prefixes) == len(split.spans) + 1
    assert list(split.prefixes) == sorted(split.prefixes)
    opening = split.prefixes[0]
    for (_, end), length in zip(split.spans, split.prefixes[1:], strict=True):
        assert length <= max(end, opening)
        assert "".join(pieces[length:end]).strip() == ""


@settings(max_examples=1000, deadline=None)
@given(pieces=st.lists(fragments, max_size=30))
def test_without_a_guard_no_paragraph_is_blank_beside_another(pieces: list[str]) -> None:
    found = texts(pieces)
    assert len(found) <= 1 or all(text.strip() for text in found)
