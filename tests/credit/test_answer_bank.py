"""Which answers a group's bank holds, as which tokens."""

from __future__ import annotations

import pytest
from piecewise import PUZZLE, Piecewise, group, rollout

from stepcredit.countdown.verifier import grade
from stepcredit.credit.answer_bank import answer_bank
from stepcredit.modeling.tokenizer import TextCodec, build_tokenizer
from stepcredit.rollouts import Completion, Group, Rollout

HEAD = ["<reasoning>", "Try", "</reasoning>", "\n", "<solution>"]


def submit(*answer: str) -> list[str]:
    return [*HEAD, *answer, "</solution>"]


def test_the_bank_holds_every_submitted_answer_and_counts_equal_ones() -> None:
    tokens = Piecewise()
    bank = answer_bank(
        group(
            tokens,
            submit("3", "+", "5"),
            submit("5", "+", "3"),
            submit("3", "+", "5"),
            submit("3", "*", "5"),
            submit("3", "*", "5"),
            submit("hello"),
        ),
        tokens,
    )
    assert bank is not None
    assert [(answer.text, answer.count) for answer in bank.correct] == [("3+5", 2), ("5+3", 1)]
    assert [(answer.text, answer.count) for answer in bank.incorrect] == [("3*5", 2), ("hello", 1)]
    assert bank.correct[0].token_ids == tokens.ids(["3", "+", "5"])
    assert [answer.correct for answer in bank.answers] == [True, True, False, False]


@pytest.mark.parametrize("answers", [["3+5", "5+3"], ["3*5", "2"], []])
def test_a_homogeneous_group_has_no_bank(answers: list[str]) -> None:
    tokens = Piecewise()
    silent = [*HEAD, "</solution>"]
    assert answer_bank(group(tokens, *[submit(answer) for answer in answers], silent), tokens) is None


def test_what_hit_the_token_cap_submits_nothing_even_if_an_answer_stands_there() -> None:
    tokens = Piecewise()
    cut_off = rollout(tokens, submit("3", "*", "5"), finished=False)
    right = rollout(tokens, submit("3", "+", "5"))
    assert answer_bank(Group(PUZZLE, [cut_off, right]), tokens) is None


def test_answers_are_the_same_only_if_their_tokens_are() -> None:
    tokens = Piecewise()
    bank = answer_bank(group(tokens, submit("3", "+5"), submit("3", "+", "5"), submit("2")), tokens)
    assert bank is not None
    assert [(answer.text, answer.count) for answer in bank.correct] == [("3+5", 1), ("3+5", 1)]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (["\n", "3", " +", " 5", "\n"], ["3", " +", " 5"]),
        ([" ", "\n", "3", " ", "+", "5", " ", " "], ["3", " ", "+", "5"]),
        (["\n3", "+", "5\n"], ["\n3", "+", "5\n"]),
    ],
)
def test_tokens_that_are_only_blanks_around_an_answer_are_not_its_own(answer: list[str], expected: list[str]) -> None:
    tokens = Piecewise()
    bank = answer_bank(group(tokens, submit(*answer), submit("2")), tokens)
    assert bank is not None
    assert bank.correct[0].token_ids == tokens.ids(expected)


@pytest.mark.parametrize(
    "pieces",
    [
        ["<reasoning>", "</reasoning>", "<solution", ">3", " + 5", "</solution>"],
        ["<reasoning>", "</reasoning>", "<solution>", "3 +", " 5<", "/solution>"],
        ["<reasoning></reasoning><solution>3 + 5</solution>"],
    ],
)
def test_an_answer_that_shares_a_token_with_a_tag_is_encoded_anew(pieces: list[str]) -> None:
    tokens = Piecewise()
    bank = answer_bank(group(tokens, pieces, submit("2")), tokens)
    assert bank is not None
    assert bank.correct[0].token_ids == tokens.ids("3 + 5")


def test_a_tag_that_shares_a_token_with_blanks_does_no_harm() -> None:
    tokens = Piecewise()
    pieces = ["<reasoning>", "</reasoning>\n<solution", ">\n", "3", "+", "5", "\n</", "solution>"]
    bank = answer_bank(group(tokens, pieces, submit("2")), tokens)
    assert bank is not None
    assert bank.correct[0].token_ids == tokens.ids(["3", "+", "5"])


def test_numbers_of_our_own_tokenizer_never_merge() -> None:
    """Re-encoding `8 97` from joined text once made it `897`."""
    codec = TextCodec(build_tokenizer(100))
    rollouts = []
    for answer in ("3 + 5", "8 97"):
        text = f"<reasoning>Try 3 + 5 = 8.</reasoning>\n<solution>{answer}</solution>"
        ids = (*codec.encode(text), codec.eos_id)
        completion = Completion(ids, (0.0,) * len(ids), finished=True)
        rollouts.append(Rollout((0,), completion, codec.decode(ids), grade(codec.decode(ids), PUZZLE)))
    bank = answer_bank(Group(PUZZLE, rollouts), codec)
    assert bank is not None
    assert [codec.decode(answer.token_ids) for answer in bank.answers] == ["3 + 5", "8 97"]
    assert len(bank.incorrect[0].token_ids) == 2
