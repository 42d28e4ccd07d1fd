"""Each open question's setting, with numbers worked by hand: what it changes, and that it changes nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from piecewise import PUZZLE, Piecewise, group, rollout
from words import BAD, CORRECT, GOOD, INCORRECT, LEVEL, WordScorer

from stepcredit.countdown.puzzle import Puzzle
from stepcredit.countdown.reference import reference_answer
from stepcredit.credit.contrastive_potential import ContrastivePotential
from stepcredit.credit.moving_average import MovingAverage
from stepcredit.credit.paragraphs import split_paragraphs
from stepcredit.credit.prefix_value import PrefixValue
from stepcredit.credit.reference_likelihood import ReferenceLikelihood
from stepcredit.credit.scheme import RolloutCredit
from stepcredit.rollouts import Completion, Group
from stepcredit.sampling.continuations import Continuations, Prefix
from stepcredit.sampling.sampler import NOTHING
from stepcredit.settings.arm import ArmSettings, ShapingSettings

OTHER = [*GOOD[:-2], "5+3", "</solution>"]
"""Another right answer, which the scorer gives 0."""


def scheme(**changes: object) -> tuple[ContrastivePotential, Piecewise]:
    tokens = Piecewise()
    settings = ShapingSettings(max_paragraph_len=4).model_copy(update=changes)
    return ContrastivePotential(WordScorer(tokens), tokens, settings), tokens


def credited(*completions: list[str], **changes: object) -> tuple[RolloutCredit, ...]:
    credit, tokens = scheme(**changes)
    return credit.assign([group(tokens, *completions)])[0][0].rollouts


def test_the_own_answer_is_left_out_of_its_bank_alone() -> None:
    good, other, bad, *_ = credited(GOOD, OTHER, BAD, BAD, leave_own_out=True)
    assert good.potential == [0.0, 0.0, 0.0]  # only 5+3 is left to be right
    assert other.potential == [1.0, 1.0, 3.0]  # only 3+5 is
    assert bad.potential == pytest.approx([np.log((np.e + 1) / 2), np.log((np.exp(-9) + 1) / 2)])


def test_a_rollout_whose_own_answer_was_the_only_one_of_its_side_is_not_shaped() -> None:
    good, bad = credited(GOOD, BAD, leave_own_out=True)
    assert good.potential == bad.potential == []
    assert good.advantages.tolist() == [0.5] * len(good.advantages)


def test_normalised_likelihoods_are_means_over_the_tokens_of_answer_and_closing_tag() -> None:
    good, _ = credited(GOOD, BAD, length_normalised=True)
    assert good.potential == pytest.approx([1 / 12, 1 / 12, 3 / 12])  # one token, and eleven letters of the tag
    assert good.likelihoods is not None
    assert good.likelihoods[:, 0].tolist() == [1.0, 1.0, 3.0]  # what is kept to be shown is not normalised


def test_an_unshaped_first_paragraph_leaves_the_others_as_they_were() -> None:
    good, bad = credited(GOOD, BAD, first_paragraph="unshaped")
    assert good.advantages.tolist() == pytest.approx([0.5] * 3 + [0.5 + 0.197] * 2 + [0.5] * 6)
    assert bad.advantages.tolist() == pytest.approx([-0.5] * len(bad.advantages))
    assert good.potential == [1.0, 1.0, 3.0]


def test_the_first_potential_can_be_that_of_the_prompt_alone() -> None:
    good, bad = credited(GOOD, BAD, first_paragraph="prompt")
    assert good.potential == [-2.0, 1.0, 3.0]
    assert good.paragraphs[0].shaping == pytest.approx(0.1 * (0.99 * 1 + 2))
    assert good.paragraphs[1].shaping == pytest.approx(0.197)
    assert bad.potential == [-2.0, -5.0]


def test_the_closing_tag_can_carry_the_shaping_of_the_last_paragraph() -> None:
    good, _ = credited(GOOD, BAD, closing_tag=True)
    assert good.advantages.tolist() == pytest.approx([0.499] * 3 + [0.697] * 3 + [0.5] * 5)


def test_the_closing_tag_is_found_in_tokens_of_every_shape() -> None:
    assert split_paragraphs(["a", "</rea", "soning>", "\n"], None).closing == (1, 3)
    assert split_paragraphs(["a", "b</", "reasoning", ">\n<sol", "ution>"], None).closing == (1, 4)
    assert split_paragraphs(["a", "b"], None).closing == (2, 2)


def test_malformed_and_truncated_rollouts_can_be_left_unshaped() -> None:
    credit, tokens = scheme(well_formed_only=True)
    cut_off = rollout(tokens, ["<reasoning>", "try", "\n\n", "good"], finished=False)
    good, bad = group(tokens, GOOD, BAD).rollouts
    credits, metrics = credit.assign([Group(PUZZLE, [cut_off, good, bad])])
    assert credits[0].rollouts[0].advantages.tolist() == pytest.approx([-1 / 3] * 4)
    assert credits[0].rollouts[1].potential == [1.0, 1.0, 3.0]
    assert metrics["shaped_rollouts"] == pytest.approx(2 / 3)


def test_a_reference_answer_gives_all_incorrect_groups_a_signal() -> None:
    first, _ = credited(BAD, BAD, reference_answer="all_incorrect")
    assert first.potential == [1.0, -5.0]
    assert first.advantages.tolist() == pytest.approx([-0.595] * 2 + [0.0] * 6)  # its group advantage is 0
    assert credited(BAD, BAD)[0].potential == []


def test_a_reference_answer_joins_the_bank_only_where_it_is_asked_for() -> None:
    banks = {}
    for when in ("never", "all_incorrect", "always"):
        credit, tokens = scheme(reference_answer=when)
        bank = credit.bank(group(tokens, GOOD, BAD))
        assert bank is not None
        banks[when] = [answer.text for answer in bank.answers]
    assert banks == {
        "never": [CORRECT, INCORRECT],
        "all_incorrect": [CORRECT, INCORRECT],
        "always": [CORRECT, "3 + 5", INCORRECT],
    }
    assert credited(GOOD, GOOD, reference_answer="always")[0].potential == []  # nothing wrong to tell it from


def test_reference_answers_reach_the_target() -> None:
    assert reference_answer(Puzzle((3, 5, 2), 16)) == "2 * (3 + 5)"
    assert reference_answer(PUZZLE) == "3 + 5"  # no way to 8 with all three numbers
    assert reference_answer(Puzzle((1, 1), 99)) is None


def test_sentences_end_steps_and_numbers_with_a_point_do_not() -> None:
    pieces = ["<reasoning>", "Try", "3", ".", "5", ".", "Too", "low", ".", "\n\n", "Done!", " Next", "</reasoning>"]
    texts = ["".join(pieces[a:b]) for a, b in split_paragraphs(pieces, None, "sentence").spans]
    assert texts == ["<reasoning>Try3.5.", "Toolow.\n\n", "Done!", " Next"]
    assert split_paragraphs(pieces, None).spans == ((0, 10), (10, 12))


@given(st.lists(st.sampled_from(["a", " b", ".", "4.8", "! ", ".\n\nSo", "\n", "\n\n", " ", "?."]), max_size=12))
def test_sentences_cover_the_reasoning_exactly_once(pieces: list[str]) -> None:
    spans = split_paragraphs([*pieces, "</reasoning>"], None, "sentence").spans
    assert [token for start, end in spans for token in range(start, end)] == list(range(len(pieces)))


def test_the_reference_likelihood_is_the_potential_by_itself_in_every_group() -> None:
    tokens = Piecewise()
    credit = ReferenceLikelihood(WordScorer(tokens), tokens, ShapingSettings())
    mixed, homogeneous = credit.assign([group(tokens, GOOD, BAD), group(tokens, BAD, BAD)])[0]
    assert mixed.rollouts[0].potential == [1.0, 1.0, 3.0]
    assert mixed.rollouts[1].potential == homogeneous.rollouts[0].potential == [1.0, -5.0]  # -9, clipped
    assert homogeneous.rollouts[1].paragraphs[0].shaping == pytest.approx(-0.595)


class Coin:
    """After `good` both continuations are right, else every other one; each takes five tokens, one more when told."""

    def __init__(self, tokens: Piecewise, extra: int = 0) -> None:
        self.tokens, self.extra, self.seeds = tokens, extra, []

    def generate(self, prompts, *, seeds, temperature, max_new_tokens, recording):
        assert recording == NOTHING  # nobody reads their log-probs
        self.seeds += seeds
        right = self.tokens.ids(["</reasoning>", "\n", "<solution>", CORRECT, "</solution>"] + [" "] * self.extra)
        wrong = self.tokens.ids(["</reasoning>", "\n", "<solution>", "2", "</solution>"])
        return [
            Completion(right if index % 2 or self.tokens.pieces(prompt)[-1] == "good" else wrong, (), True)
            for index, prompt in enumerate(prompts)
        ]

    def push_weights(self, model):
        raise AssertionError("continuations change no weights")


def test_a_prefix_value_is_the_share_of_continuations_that_end_right() -> None:
    tokens = Piecewise()
    coin = Coin(tokens)
    continuations = Continuations(coin, tokens, samples=2, temperature=1.0, max_new_tokens=30, seed=0)
    credit = PrefixValue(continuations, tokens, ShapingSettings(beta=1.0, gamma=1.0))
    credits, metrics = credit.assign([group(tokens, GOOD, BAD), group(tokens, BAD, BAD)])
    good, bad = credits[0].rollouts
    assert good.potential == [0.5, 0.5, 1.0]
    assert good.advantages.tolist() == pytest.approx([0.5] * 3 + [1.0] * 2 + [0.5] * 6)
    assert bad.potential == [0.5, 0.5]
    assert credits[1].rollouts[0].potential == []
    # Five boundaries, of which the empty reasoning is shared: four prefixes, two continuations of five tokens each.
    assert (metrics["scorings"], metrics["scorings_unique"], metrics["tokens_scored"]) == (10, 8, 40)
    assert len(set(coin.seeds)) == len(coin.seeds) == 8


def test_a_continuation_beyond_the_cap_of_the_whole_completion_is_no_success() -> None:
    tokens = Piecewise()
    prefix = Prefix(PUZZLE, tokens.ids(["Go"]), tokens.ids(["<reasoning>", "good"]))
    for cap, successes in ((8, 2), (7, 0)):
        continuations = Continuations(Coin(tokens, extra=1), tokens, 2, 1.0, max_new_tokens=cap, seed=0)
        assert continuations.sample([prefix])[0].successes == successes
    assert continuations.sample([prefix])[0].tokens == 10  # what the cap leaves of them


def test_a_prefix_that_fills_the_cap_is_not_continued() -> None:
    tokens = Piecewise()
    full = Prefix(PUZZLE, tokens.ids(["Go"]), tokens.ids(["<reasoning>", *["try"] * 7]))
    short = Prefix(PUZZLE, tokens.ids(["Go"]), tokens.ids(["<reasoning>", "good"]))
    outcomes = Continuations(Coin(tokens), tokens, 2, 1.0, max_new_tokens=8, seed=0).sample([full, short, full])
    assert [outcome.successes for outcome in outcomes] == [0, 2, 0]
    assert [outcome.tokens for outcome in outcomes] == [0, 10, 0]


def test_a_moving_average_keeps_its_share_of_itself() -> None:
    average, policy = torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        average.weight.fill_(1.0)
        policy.weight.fill_(5.0)
    moving = MovingAverage(average, policy, decay=0.75)
    moving.update()
    assert average.weight.item() == pytest.approx(2.0)  # 0.75 * 1 + 0.25 * 5
    moving.update()
    assert average.weight.item() == pytest.approx(2.75)
    assert policy.weight.item() == 5.0


def test_an_arm_that_samples_takes_no_scorer() -> None:
    with pytest.raises(ValueError, match="takes no scorer"):
        ArmSettings(label="x", credit="prefix_value", shaping={}, scorer={"model": "frozen"})
    with pytest.raises(ValueError, match="needs a scorer and shaping"):
        ArmSettings(label="x", credit="reference_likelihood", shaping={})


options = st.fixed_dictionaries(
    {
        "max_paragraph_len": st.sampled_from([None, 1, 2, 4]),
        "unit": st.sampled_from(["paragraph", "sentence"]),
        "reference_answer": st.sampled_from(["never", "all_incorrect", "always"]),
        "leave_own_out": st.booleans(),
        "length_normalised": st.booleans(),
        "first_paragraph": st.sampled_from(["empty_reasoning", "prompt", "unshaped"]),
        "closing_tag": st.booleans(),
        "well_formed_only": st.booleans(),
    }
)
paragraphs = st.lists(
    st.lists(st.sampled_from(sorted(LEVEL.keys() - {"<reasoning>"})), min_size=1, max_size=3), max_size=4
)


@given(options, st.lists(st.tuples(paragraphs, st.sampled_from([CORRECT, INCORRECT, "5+3"])), min_size=2, max_size=4))
def test_shaping_never_leaks_out_of_its_paragraph(
    changes: dict[str, object], traces: list[tuple[list[list[str]], str]]
) -> None:
    """Whatever the settings: a token's advantage is its group's, plus the shaping of the paragraph that holds it."""
    credit, tokens = scheme(**changes)
    completions = [
        ["<reasoning>", *[piece for words in trace for piece in (*words, "\n\n")], *GOOD[5:8], answer, "</solution>"]
        for trace, answer in traces
    ]
    whole = group(tokens, *completions)
    for item, found in zip(whole.rollouts, credit.assign([whole])[0][0].rollouts, strict=True):
        expected = np.full(len(item), found.group_advantage)
        for paragraph in found.paragraphs:
            expected[paragraph.start : paragraph.end] += paragraph.shaping
        if changes["closing_tag"] and found.potential:
            expected[found.paragraphs[-1].end] += found.paragraphs[-1].shaping
        assert found.advantages.tolist() == expected.astype(np.float32).tolist()
        assert [p.start for p in found.paragraphs][1:] == [p.end for p in found.paragraphs][:-1]
