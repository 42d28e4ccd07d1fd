import math

import pytest
import torch

from stepcredit.losses.ratios import decoupled_loss, split_metrics, split_ratio


def logs(*values):
    return torch.tensor([math.log(value) for value in values], dtype=torch.float64)


def test_the_two_factors_multiply_to_the_whole_ratio():
    split = split_ratio(logs(0.6, 0.3), logs(0.5, 0.3), logs(0.4, 0.6))
    assert split.backend.exp().tolist() == pytest.approx([1.25, 0.5])
    assert split.update.exp().tolist() == pytest.approx([1.2, 1.0])
    assert split.whole.exp().tolist() == pytest.approx([1.5, 0.5])


def test_only_the_update_carries_a_gradient():
    new = logs(0.6, 0.3).requires_grad_()
    old = logs(0.5, 0.3).requires_grad_()
    sampler = logs(0.4, 0.6).requires_grad_()
    split = split_ratio(new, old, sampler)
    split.whole.sum().backward()
    assert new.grad.tolist() == [1.0, 1.0]
    assert old.grad is None
    assert sampler.grad is None
    assert not split.backend.requires_grad


def test_a_wrong_sampler_and_a_large_step_are_told_apart():
    wrong_sampler = split_metrics(split_ratio(logs(0.5, 0.5), logs(0.5, 0.5), logs(0.4, 0.8)))
    large_step = split_metrics(split_ratio(logs(0.5, 0.5), logs(0.4, 0.8), logs(0.4, 0.8)))
    assert wrong_sampler["whole_effective_sample_size"] == pytest.approx(large_step["whole_effective_sample_size"])
    ratios = torch.tensor([1.25, 0.625])
    expected = (ratios.sum() ** 2 / (2 * ratios.square().sum())).item()
    assert wrong_sampler["backend_effective_sample_size"] == pytest.approx(expected)
    assert wrong_sampler["update_effective_sample_size"] == pytest.approx(1.0)
    assert wrong_sampler["update_clipped"] == 0.0
    assert large_step["backend_ratio"] == pytest.approx(1.0)
    assert large_step["update_clipped"] == 1.0


def test_the_clip_acts_on_the_update_and_the_cap_on_the_backend():
    new = logs(0.75, 0.5, 0.5).requires_grad_()
    split = split_ratio(new, logs(0.5, 0.5, 0.5), logs(0.5, 0.4, 0.1))
    loss = decoupled_loss(split, torch.ones(3, dtype=torch.float64), backend_cap=2.0, clip=0.2)
    assert loss.tolist() == pytest.approx([-1.2, -1.25, -2.0])  # clipped at 1.2; 5/4; 5 capped at 2
    loss.sum().backward()
    assert new.grad.tolist() == pytest.approx([0.0, -1.25, -2.0])  # where the clip binds there is no gradient


def test_shapes_that_differ_are_refused():
    with pytest.raises(ValueError, match="one shape"):
        split_ratio(torch.zeros(2), torch.zeros(2), torch.zeros(3))
