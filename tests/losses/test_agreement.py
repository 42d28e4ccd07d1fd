import math

import pytest
import torch

from stepcredit.losses.agreement import (
    EXACT_WORST,
    STEP_METRICS,
    effective_sample_size,
    judge,
    measure_agreement,
    noise_band,
    outside_band,
)


def agreement(log_ratio, count=1):
    """p / q with the given logs, each `count` times."""
    p = torch.tensor(log_ratio, dtype=torch.float64).repeat(count)
    return measure_agreement(p, torch.zeros_like(p))


def test_every_metric_is_what_it_is_by_hand():
    p = torch.tensor([math.log(0.5), math.log(0.2)])
    q = torch.tensor([math.log(0.4), math.log(0.24)])  # ratios 5/4 and 5/6
    found = measure_agreement(p, q, entropies=torch.tensor([0.6, 1.0]))
    assert found.tokens == 2
    assert found.mean_ratio == pytest.approx(25 / 24)
    assert found.ratio_distance == pytest.approx(1 / 24)
    assert found.mean_abs == pytest.approx((math.log(1.25) + math.log(1.2)) / 2)
    assert found.worst == pytest.approx(math.log(1.25))
    assert found.kl == pytest.approx((1.25 - math.log(1.25) - 1 + 5 / 6 - math.log(5 / 6) - 1) / 2)
    assert found.clipped == 0.5  # off by 0.25 and by 0.17
    assert found.effective_sample_size == pytest.approx((25 / 12) ** 2 / (2 * (1.25**2 + (5 / 6) ** 2)))
    assert found.far == 1.0
    assert found.entropy_gap == pytest.approx((-math.log(0.4) - math.log(0.24)) / 2 - 0.8)
    assert found.ratio_error == pytest.approx((1.25 - 5 / 6) / 2)  # standard deviation d / sqrt 2, over sqrt 2


def test_a_token_that_one_side_calls_impossible_is_counted_and_left_out_of_the_means():
    found = measure_agreement(torch.tensor([-1.0, -math.inf]), torch.tensor([-1.0, -2.0]))
    assert found.impossible == 0.5
    assert found.mean_ratio == 1.0
    assert judge(found) == "broken"


def test_no_tokens_is_an_error():
    with pytest.raises(ValueError, match="N at least 1"):
        measure_agreement(torch.zeros(0), torch.zeros(0))


@pytest.mark.parametrize(
    ("log_ratio", "formats", "verdict"),
    [
        ([EXACT_WORST / 2, -EXACT_WORST / 2], ("float32",), "exact"),
        ([2e-6, -2e-6, 5e-4, -5e-4], ("float32",), "biased"),
        ([3e-3, -3e-3], ("bfloat16",), "numerical noise"),
        ([3e-3, -3e-3], ("float32",), "biased"),  # what rounding explains in bfloat16 it does not in float32
        ([3e-3, -3e-3], ("float32", "bfloat16"), "numerical noise"),  # the coarsest counts
        ([3e-3, 2e-3], ("bfloat16",), "biased"),  # one way: the mean ratio is off by many standard errors
        ([1.0, -1.0], ("bfloat16",), "broken"),
        ([0.04, -0.04], ("fp8_e4m3",), "numerical noise"),
        ([0.3, -0.35, *[1e-3, -1e-3] * 9], ("fp8_e4m3",), "biased"),  # a tenth clipped is no noise
        ([math.nan], ("float32",), "broken"),
    ],
)
def test_the_rule_gives_the_stated_verdict(log_ratio, formats, verdict):
    assert judge(agreement(log_ratio, 1000), formats) == verdict


def test_the_effective_sample_size_is_one_for_equal_weights_and_a_share_for_one_heavy_one():
    assert effective_sample_size(torch.full((7,), 3.0)) == pytest.approx(1.0)
    assert effective_sample_size(torch.tensor([1.0, 0.0, 0.0, 0.0])) == pytest.approx(0.25)


def test_a_step_inside_the_band_says_nothing_and_one_outside_says_what():
    step = {
        "mean_ratio": 1 + 1e-7,
        "mismatch_kl": 1e-13,
        "mean_log_ratio": 3e-7,
        "max_log_ratio": 7e-5,
        "clipped": 0.0,
        "impossible": 0.0,
    }
    assert outside_band(step, "float32") == []
    said = outside_band({**step, "max_log_ratio": 0.2, "mean_ratio": 0.99}, "float32")
    assert said == ["|mean_ratio - 1| 0.01 > 1e-05", "max_log_ratio 0.2 > 0.001"]
    assert outside_band({**step, "max_log_ratio": 0.2}, "bfloat16") == []
    assert noise_band("bfloat16")["mean_ratio"] == 4 * 2**-7


def test_a_step_that_trained_nothing_is_not_outside():
    nothing = dict.fromkeys(STEP_METRICS, math.nan)
    assert outside_band(nothing, "float32") == []
