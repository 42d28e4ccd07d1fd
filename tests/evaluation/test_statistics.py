import time

import numpy as np
import pytest

from stepcredit.evaluation.statistics import (
    Bootstrap,
    Interval,
    mean_interval,
    paired_difference,
    paired_ratio_difference,
    pass_at_k,
    ratio_interval,
    spearman,
    spearman_interval,
)

QUICK = Bootstrap(resamples=500, seed=1)


def test_pass_at_k_matches_values_worked_by_hand():
    # n = 4: pass@1 = c / 4; pass@2 = 1 - C(4 - c, 2) / 6 = 1 - {6, 3, 1, 0, 0} / 6; pass@4 = any correct.
    counts = [0, 1, 2, 3, 4]
    assert pass_at_k(counts, 4, 1) == pytest.approx([0, 0.25, 0.5, 0.75, 1])
    assert pass_at_k(counts, 4, 2) == pytest.approx([0, 0.5, 5 / 6, 1, 1])
    assert pass_at_k(counts, 4, 4) == pytest.approx([0, 1, 1, 1, 1])


def test_pass_at_k_is_the_mean_over_all_subsets():
    from itertools import combinations

    outcomes = [1, 0, 0, 1, 0, 0, 0]
    brute = np.mean([any(subset) for subset in combinations(outcomes, 3)])
    assert pass_at_k([2], 7, 3) == pytest.approx([brute])


@pytest.mark.parametrize("k", [0, 5])
def test_pass_at_k_refuses_k_outside_the_samples(k):
    with pytest.raises(ValueError, match="4 samples"):
        pass_at_k([1], 4, k)


def test_pass_at_k_refuses_impossible_counts():
    with pytest.raises(ValueError, match="between 0 and 4"):
        pass_at_k([5], 4, 1)


def test_equal_values_give_an_interval_of_no_width():
    interval = mean_interval(np.full((3, 20), 0.1), QUICK)
    assert (interval.low, interval.high) == pytest.approx((0.1, 0.1), abs=1e-12)
    difference = paired_difference(np.eye(3, 20), np.eye(3, 20), QUICK)
    assert difference == Interval(0, 0, 0)
    assert not difference.excludes_zero


def test_the_same_seed_gives_the_same_interval_and_another_seed_another():
    values = np.random.default_rng(0).random((3, 50))
    assert mean_interval(values, QUICK) == mean_interval(values, QUICK)
    assert mean_interval(values, QUICK) != mean_interval(values, Bootstrap(resamples=500, seed=2))


def test_one_seed_resamples_the_puzzles_only():
    values = np.array([[0.0, 1.0] * 50])
    interval = mean_interval(values, Bootstrap(resamples=4000))
    # standard error of a share of 1/2 among 100: 0.05, so 0.5 -+ 0.098
    assert (interval.low, interval.high) == pytest.approx((0.402, 0.598), abs=0.012)


def test_seeds_that_differ_widen_the_interval():
    puzzles = np.tile([0.0, 1.0], 100)
    alike = mean_interval(np.stack([puzzles] * 3), QUICK)
    apart = mean_interval(np.stack([puzzles * 0.2, puzzles, puzzles * 1.8]), QUICK)
    assert apart.high - apart.low > 2 * (alike.high - alike.low)


def test_more_seeds_on_the_same_puzzles_do_not_shrink_what_the_puzzles_leave_open():
    puzzles = np.random.default_rng(3).random(100)
    one = mean_interval(puzzles[None], QUICK)
    many = mean_interval(np.stack([puzzles] * 8), QUICK)
    assert many.high - many.low == pytest.approx(one.high - one.low, rel=0.15)


def test_intervals_cover_the_truth_as_often_as_they_say():
    generator = np.random.default_rng(7)
    covered = 0
    trials = 400
    for trial in range(trials):
        difficulty = generator.beta(2, 2, size=120)
        seed_effect = generator.normal(0, 0.02, size=(5, 1))
        chance = np.clip(difficulty[None] + seed_effect, 0, 1)
        values = generator.binomial(4, chance) / 4
        interval = mean_interval(values, Bootstrap(resamples=400, seed=trial))
        covered += interval.low <= 0.5 <= interval.high
    assert covered / trials == pytest.approx(0.95, abs=0.035)


def test_pairing_is_narrower_than_not_pairing_where_puzzles_are_shared():
    generator = np.random.default_rng(5)
    difficulty = generator.random(300)
    first = generator.binomial(4, difficulty, size=(3, 300)) / 4
    second = generator.binomial(4, difficulty, size=(3, 300)) / 4
    paired = paired_difference(first, second, QUICK)
    shuffled = paired_difference(first, second[:, generator.permutation(300)], QUICK)
    assert paired.high - paired.low < 0.75 * (shuffled.high - shuffled.low)
    assert paired.mean == pytest.approx(first.mean() - second.mean())


def test_pairing_refuses_arms_with_other_seeds_or_puzzles():
    with pytest.raises(ValueError, match="same"):
        paired_difference(np.zeros((3, 4)), np.zeros((2, 4)), QUICK)


def test_a_ratio_is_of_the_sums_and_survives_empty_resamples():
    # 2 correct of 3 finished, not the mean of 1/1 and 1/2
    interval = ratio_interval([[1.0, 1.0]], [[1.0, 2.0]], QUICK)
    assert interval.mean == pytest.approx(2 / 3)
    assert (interval.low, interval.high) == pytest.approx((0.5, 1.0))
    nothing = ratio_interval([[0.0, 0.0]], [[0.0, 0.0]], QUICK)
    assert np.isnan([nothing.mean, nothing.low, nothing.high]).all()


def test_a_difference_of_ratios_is_zero_for_equal_arms():
    finished, correct = np.ones((2, 10)), np.eye(2, 10)
    assert paired_ratio_difference((correct, finished), (correct, finished), QUICK) == Interval(0, 0, 0)


def test_spearman_matches_a_value_worked_by_hand():
    # ranks 1 2 3 4 against 2 1 4 3: 1 - 6 * 4 / (4 * 15) = 0.6
    assert spearman([1, 2, 3, 4], [20, 10, 40, 30]) == pytest.approx(0.6)
    assert np.isnan(spearman([1, 2, 3], [5, 5, 5]))


def test_spearman_interval_holds_the_estimate_and_widens_when_pairs_cluster():
    generator = np.random.default_rng(2)
    base = generator.normal(size=40)
    x = np.repeat(base, 5)
    y = np.repeat(base + generator.normal(size=40), 5)
    settings = Bootstrap(resamples=300)
    alone = spearman_interval(x, y, settings)
    clustered = spearman_interval(x, y, settings, clusters=np.repeat(np.arange(40), 5))
    assert alone.low < alone.mean < alone.high
    assert clustered.high - clustered.low > 1.5 * (alone.high - alone.low)


def test_the_default_bootstrap_takes_well_under_a_second():
    values = np.random.default_rng(0).random((3, 512))
    start = time.process_time()
    mean_interval(values, Bootstrap())
    assert time.process_time() - start < 0.5
