import pytest
import torch

from stepcredit.losses import build_loss
from stepcredit.training.drift_probe import DriftProbe, completed, half_sum


def two_tokens(loss, positions=4):
    """Logits of p = (.5, .5) against a sampler of (.6, .4), at ten positions."""
    probe = DriftProbe(build_loss(loss), positions=positions, head_size=2)
    ids = torch.tensor([[0, 1]] * 10)
    probe.add(torch.zeros(10, 2), (ids, torch.tensor([[0.6, 0.4]] * 10).log()))
    return probe.means()


def test_the_two_token_model_drifts_by_a_tenth_and_not_once_centered():
    assert two_tokens("reinforce") == pytest.approx({"drift": 0.1, "total_variation": 0.1}, abs=1e-6)
    assert two_tokens("sc")["drift"] == pytest.approx(0.0, abs=1e-6)
    assert two_tokens("sc_sampled")["drift"] == pytest.approx(0.0, abs=1e-6)
    assert two_tokens("is")["drift"] == pytest.approx(0.0, abs=1e-6)


def test_what_is_not_measured_is_not_logged():
    assert two_tokens("reinforce", positions=0) == {}


def test_the_tail_is_the_trainers_rescaled_to_what_the_sampler_leaves():
    p = torch.tensor([[0.4, 0.3, 0.2, 0.1]], dtype=torch.float64)
    q = completed(p, torch.tensor([[1, 0]]), torch.tensor([[0.5, 0.2]]).log())
    # the head of the sampler is 0.7; the trainer's tail 0.2 : 0.1 shares the 0.3 that is left
    torch.testing.assert_close(q, torch.tensor([[0.2, 0.5, 0.2, 0.1]], dtype=torch.float64), atol=1e-6, rtol=0)


def test_a_head_that_is_the_whole_vocabulary_leaves_no_tail():
    p = torch.tensor([[0.5, 0.5]], dtype=torch.float64)
    q = completed(p, torch.tensor([[1, 0]]), torch.tensor([[0.9, 0.1]]).log())
    torch.testing.assert_close(q, torch.tensor([[0.1, 0.9]], dtype=torch.float64), atol=1e-6, rtol=0)


def test_the_measure_is_half_the_sum_of_sizes():
    assert half_sum(torch.tensor([0.1, -0.1])) == pytest.approx(0.1)
