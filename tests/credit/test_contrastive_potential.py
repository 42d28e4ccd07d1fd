"""The formulas of potential and shaping, and the scheme with a scorer whose numbers are known."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from piecewise import PROMPT, PUZZLE, Piecewise, group, rollout
from words import BAD, CORRECT, GOOD, INCORRECT, WordScorer

from stepcredit.credit.contrastive_potential import (
    ContrastivePotential,
    contrastive_potential,
    log_mean_exp,
)
from stepcredit.credit.potential_shaping import shaping
from stepcredit.rollouts import Group
from stepcredit.scoring.scorer import LogLikelihoods
from stepcredit.settings.arm import ShapingSettings


def test_log_mean_exp_worked_by_hand() -> None:
    assert log_mean_exp([math.log(1), math.log(3)]) == pytest.approx(math.log(2))  # mean of 1 and 3
    assert log_mean_exp([math.log(1), math.log(9)], 2.0) == pytest.approx(2 * math.log(2))  # roots 1 and 3
    assert log_mean_exp([-7.5]) == pytest.approx(-7.5)


def test_log_mean_exp_lies_between_the_mean_and_the_maximum() -> None:
    z = [-1.0, -2.0, -9.0]
    assert log_mean_exp(z, 1e-3) == pytest.approx(-1.0, abs=2e-3)
    assert log_mean_exp(z, 1e6) == pytest.approx(-4.0, abs=1e-4)


def test_log_mean_exp_survives_numbers_that_exp_does_not() -> None:
    assert log_mean_exp([-2000.0, -2000.0]) == pytest.approx(-2000.0)
    assert log_mean_exp([-1.0, -2.0], 1e-4) == pytest.approx(-1.0, abs=1e-3)


def test_potential_worked_by_hand() -> None:
    correct = np.log([[0.1, 0.3], [0.4, 0.4]])  # means 0.2 and 0.4
    incorrect = np.log([[0.2], [0.1]])
    assert contrastive_potential(correct, incorrect).tolist() == pytest.approx([0.0, math.log(4)])


def test_potential_is_clipped_on_both_sides() -> None:
    assert contrastive_potential([[0.0], [-9.0]], [[-9.0], [0.0]]).tolist() == [5.0, -5.0]
    assert contrastive_potential([[0.0]], [[-9.0]], clip=2.0).tolist() == [2.0]


def test_an_answer_submitted_twice_counts_twice_in_the_mean() -> None:
    once = contrastive_potential(np.log([[0.1, 0.4]]), np.log([[0.1]]))
    twice = contrastive_potential(np.log([[0.1, 0.4, 0.4]]), np.log([[0.1]]))
    assert once.tolist() == pytest.approx([math.log(2.5)])
    assert twice.tolist() == pytest.approx([math.log(3)])


@pytest.mark.parametrize("sides", [(np.empty((2, 0)), np.zeros((2, 1))), (np.zeros((2, 1)), np.empty((2, 0)))])
def test_a_homogeneous_bank_has_no_potential(sides: tuple[LogLikelihoods, LogLikelihoods]) -> None:
    with pytest.raises(ValueError, match="homogeneous"):
        contrastive_potential(*sides)


def test_shaping_rewards_the_paragraph_where_the_potential_rises_and_no_other() -> None:
    potential = [0.0, 0.0, 2.0]  # start, after paragraph 1, after paragraph 2
    shaped = shaping(potential, beta=0.1, gamma=0.99)
    assert shaped.tolist() == pytest.approx([0.0, 0.198])  # 0.1 * (0.99 * 0 - 0), 0.1 * (0.99 * 2 - 0)


def test_remaining_at_a_high_potential_costs_a_little() -> None:
    """The -0.005 of idle paragraphs in CPAS's examples: 5 nats held, 0.1 * (0.99 - 1) * 5."""
    assert shaping([5.0, 5.0]).tolist() == pytest.approx([-0.005])
    assert shaping([-5.0, -5.0]).tolist() == pytest.approx([0.005])


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=8))
def test_undiscounted_shaping_adds_up_to_the_whole_rise(potential: list[float]) -> None:
    total = shaping(potential, beta=0.1, gamma=1.0).sum()
    assert total == pytest.approx(0.1 * (potential[-1] - potential[0]), abs=1e-9)


SETTINGS = ShapingSettings(beta=0.1, gamma=0.99, temperature=1.0, clip=5.0, max_paragraph_len=4)

Scheme = Callable[..., tuple[ContrastivePotential, Piecewise, WordScorer]]


@pytest.fixture
def scheme() -> Scheme:
    def build(**changes: object) -> tuple[ContrastivePotential, Piecewise, WordScorer]:
        tokens = Piecewise()
        scorer = WordScorer(tokens)
        return ContrastivePotential(scorer, tokens, SETTINGS.model_copy(update=changes)), tokens, scorer

    return build


def test_shaping_is_added_to_every_token_of_its_paragraph_and_to_no_other(scheme: Scheme) -> None:
    credit, tokens, _ = scheme()
    credits, _ = credit.assign([group(tokens, GOOD, BAD, BAD, BAD)])
    good, bad, *_ = credits[0].rollouts
    assert good.potential == [1.0, 1.0, 3.0]
    # Group advantage 1 - 1/4. Paragraph 1: 0.1 (0.99 * 1 - 1). Paragraph 2: 0.1 (0.99 * 3 - 1). Tail: 0.
    first, second = 0.75 - 0.001, 0.75 + 0.197
    assert good.advantages.tolist() == pytest.approx([first] * 3 + [second] * 2 + [0.75] * 6)
    # -9 is clipped to -5: 0.1 * (0.99 * -5 - 1).
    assert bad.potential == [1.0, -5.0]
    assert bad.advantages.tolist() == pytest.approx([-0.25 - 0.595] * 2 + [-0.25] * 6)


def test_what_explains_the_advantages_is_kept(scheme: Scheme) -> None:
    credit, tokens, _ = scheme()
    credits, _ = credit.assign([group(tokens, GOOD, BAD)])
    second = credits[0].rollouts[0].paragraphs[1]
    assert (second.text, second.tokens) == ("good\n\n", 2)
    assert (second.potential_before, second.potential_after) == (1.0, 3.0)
    assert second.shaping == pytest.approx(0.197)
    assert credits[0].bank is not None
    assert [answer.text for answer in credits[0].bank.answers] == [CORRECT, INCORRECT]


def test_answers_are_scored_with_their_closing_tag_after_prefixes_without_blank_lines(scheme: Scheme) -> None:
    credit, tokens, scorer = scheme()
    credit.assign([group(tokens, GOOD, BAD)])
    prompt = PROMPT + "<reasoning>"
    assert [prefix for prefix, _ in scorer.asked[::2]] == [
        prompt,
        prompt + "try",
        prompt + "try\n\ngood",
        prompt,
        prompt + "bad",
    ]
    assert {answer for _, answer in scorer.asked} == {CORRECT + "</solution>", INCORRECT + "</solution>"}


def test_a_change_in_one_paragraph_moves_its_own_and_the_next_shaping_only(scheme: Scheme) -> None:
    """`good` for `try` in the middle of five: A_2 and A_3 see the boundary after it, no other does."""

    def advantages(word: str) -> np.ndarray:
        credit, tokens, _ = scheme()
        words = ["try", word, "try", "try", "try"]
        pieces = ["<reasoning>", *[piece for w in words for piece in (w, "\n\n")], *GOOD[5:]]
        return credit.assign([group(tokens, pieces, BAD)])[0][0].rollouts[0].advantages

    changed = np.flatnonzero(advantages("try") != advantages("good"))
    assert changed.tolist() == [3, 4, 5, 6]  # <reasoning> try \n\n | try \n\n | try \n\n | ...


def test_a_homogeneous_group_keeps_the_group_advantage_and_is_not_scored(scheme: Scheme) -> None:
    credit, tokens, scorer = scheme()
    silent = ["<reasoning>", "try"]
    credits, metrics = credit.assign([group(tokens, GOOD, silent), group(tokens, BAD, BAD)])
    assert credits[0].rollouts[0].advantages.tolist() == [0.5] * 11
    assert credits[1].rollouts[0].advantages.tolist() == [0.0] * 8
    assert credits[0].bank is None
    assert scorer.asked == []
    assert metrics["shaped_rollouts"] == 0
    assert metrics["scorings"] == 0
    assert metrics["shaping_mean"] is None
    assert metrics["potential_first"] is None


def test_malformed_and_truncated_rollouts_of_a_mixed_group_are_shaped_too(scheme: Scheme) -> None:
    credit, tokens, _ = scheme()
    cut_off = rollout(tokens, ["<reasoning>", "try", "\n\n", "good"], finished=False)
    malformed = rollout(tokens, ["<reasoning>", "good"])
    good, bad = group(tokens, GOOD, BAD).rollouts
    credits, metrics = credit.assign([Group(PUZZLE, [good, bad, cut_off, malformed])])
    assert credits[0].rollouts[2].advantages.tolist() == pytest.approx([-0.251] * 3 + [-0.25 + 0.197])
    assert credits[0].rollouts[3].advantages.tolist() == pytest.approx([-0.25 + 0.197] * 2 + [-0.25])
    assert metrics["shaped_rollouts"] == 1.0


def test_a_rollout_without_reasoning_keeps_the_group_advantage(scheme: Scheme) -> None:
    credit, tokens, _ = scheme()
    good, bad = group(tokens, GOOD, BAD).rollouts
    bare = rollout(tokens, ["</reasoning>", "\n", "<solution>", "2", "</solution>"])
    credits, metrics = credit.assign([Group(PUZZLE, [good, bare, bad])])
    assert credits[0].rollouts[1].advantages.tolist() == pytest.approx([-1 / 3] * 6)
    assert credits[0].rollouts[2].potential == [1.0, -5.0]  # the scores of the next rollout are still its own
    assert metrics["shaped_rollouts"] == pytest.approx(2 / 3)


def test_the_guard_gives_a_long_paragraph_several_shapings(scheme: Scheme) -> None:
    pieces = ["<reasoning>", "try", "try", "good", "word", "good", *GOOD[5:]]
    credit, tokens, _ = scheme(max_paragraph_len=4)
    guarded = credit.assign([group(tokens, pieces, BAD)])[0][0].rollouts[0]
    assert guarded.potential == [1.0, 3.0, 3.0]
    assert [paragraph.tokens for paragraph in guarded.paragraphs] == [4, 2]
    credit, tokens, _ = scheme(max_paragraph_len=None)
    free = credit.assign([group(tokens, pieces, BAD)])[0][0].rollouts[0]
    assert free.potential == [1.0, 3.0]


def test_answers_count_in_the_mean_as_often_as_they_were_submitted(scheme: Scheme) -> None:
    credit, tokens, scorer = scheme()
    other = [*GOOD[:-2], "5+3", "</solution>"]  # correct, and the scorer gives it 0
    credits, _ = credit.assign([group(tokens, GOOD, GOOD, GOOD, other, BAD)])
    wanted = math.log((3 * math.exp(3) + 1) / 4)
    assert credits[0].rollouts[0].potential[-1] == pytest.approx(wanted)
    assert len(scorer.asked) == (4 * 3 + 2) * 3  # each distinct answer once a boundary


def test_metrics_worked_by_hand(scheme: Scheme) -> None:
    credit, tokens, _ = scheme()
    _, metrics = credit.assign([group(tokens, GOOD, BAD), group(tokens, BAD, BAD)])
    # Shapings -0.001, 0.197 and -0.595; potentials 1 1 3 and 1 -5, the last at the clip.
    assert metrics == pytest.approx(
        {
            "shaped_rollouts": 0.5,
            "shaping_mean": -0.133,
            "shaping_abs": 0.793 / 3,
            "potential_first": 1.0,
            "potential_last": -1.0,
            "potential_clipped": 0.2,
            "scorings": 10,
            "scorings_unique": 7,
            "tokens_scored": 99,
        }
    )
