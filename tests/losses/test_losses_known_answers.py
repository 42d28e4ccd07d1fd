"""The write-up's worked examples (SPEC section 6), to 1e-6."""

import math

import pytest
import torch

from stepcredit.losses import TokenBatch, build_loss, expected_update, on_policy_update
from stepcredit.losses.score_centering import centering_coefficients

P = torch.tensor([0.5, 0.5])
SLIGHTLY_OFF = torch.tensor([0.6, 0.4])
SKEWED = torch.tensor([0.9, 0.1])


def update(name: str, q: torch.Tensor, reward: float | list[float] = 1.0) -> list[float]:
    return expected_update(build_loss(name), P, q, torch.tensor(reward)).tolist()


def test_policy_gradient_drifts_towards_the_sampler_under_a_constant_reward():
    assert update("reinforce", SLIGHTLY_OFF) == pytest.approx([0.1, -0.1], abs=1e-6)


@pytest.mark.parametrize("name", ["sc", "sc_sampled", "tis_sc", "tis_sc_sampled"])
@pytest.mark.parametrize("q", [SLIGHTLY_OFF, SKEWED])
def test_centering_removes_the_drift_of_a_constant_reward(name, q):
    assert update(name, q) == pytest.approx([0.0, 0.0], abs=1e-6)


@pytest.mark.parametrize(
    ("name", "push"),
    [("reinforce", 0.40), ("is", 0.0), ("tis", 0.15), ("tis_sc", 0.0), ("ppo_clip", 0.25)],
)
def test_pushes_of_the_skewed_sampler(name, push):
    # the PPO clip drops B (r = 5 > 1.2), leaving 0.9 * 5/9 * 0.5
    assert update(name, SKEWED) == pytest.approx([push, -push], abs=1e-6)


def test_importance_sampling_hits_the_on_policy_target_and_centering_lands_short_of_it():
    reward = [1.0, 0.0]
    target = on_policy_update(P, torch.tensor(reward)).tolist()
    assert target == pytest.approx([0.25, -0.25])  # p_A (R_A - 0.5)
    assert update("is", SKEWED, reward) == pytest.approx(target, abs=1e-6)
    assert update("sc", SKEWED, reward) == pytest.approx([0.09, -0.09], abs=1e-6)  # q_A q_B, the covariance under q


def test_the_menu_of_42():
    # 42, 41, forty, newline | the rest of the vocabulary as one more token
    q = torch.tensor([0.70, 0.12, 0.05, 0.03], dtype=torch.float64)
    p = torch.tensor([0.64, 0.15, 0.07, 0.04], dtype=torch.float64)
    assert centering_coefficients(p.log()[None], q.log()[None])[0].tolist() == pytest.approx(
        [0.06, -0.03, -0.02, -0.01], abs=1e-6
    )
    head = p.log()[None].requires_grad_()
    batch = TokenBatch(
        logprobs=head[:, 0],
        sampler_logprobs=q.log()[:1],
        advantages=torch.ones(1, dtype=torch.float64),
        head_logprobs=head,
        head_sampler_logprobs=q.log()[None],
    )
    (gradient,) = torch.autograd.grad(build_loss("sc")(batch).per_token.sum(), head)
    assert (-gradient[0]).tolist() == pytest.approx([0.94, 0.03, 0.02, 0.01], abs=1e-6)


def test_dppo_masks_by_probability_and_by_the_sign_of_the_advantage():
    # (p, q, A): difference +0.3 dropped only when A > 0; -0.3 only when A <= 0; +-0.1 never
    cases = [(0.7, 0.4, 1.0, 0), (0.7, 0.4, -1.0, 1), (0.4, 0.7, -1.0, 0), (0.4, 0.7, 1.0, 1)]
    cases += [(0.4, 0.7, 0.0, 0), (0.5, 0.4, 1.0, 1), (0.4, 0.5, -1.0, 1), (0.02, 0.002, 1.0, 1)]
    p, q, advantage, keep = (torch.tensor(column, dtype=torch.float64) for column in zip(*cases, strict=True))
    logprobs = p.log().requires_grad_()
    loss = build_loss("dppo_kl")(TokenBatch(logprobs, q.log(), advantage))
    expected = -keep * advantage * p / q + 1e-3 * (p / q).log() ** 2
    assert loss.per_token.tolist() == pytest.approx(expected.tolist(), abs=1e-12)
    assert loss.metrics["masked"].item() == 3
    (gradient,) = torch.autograd.grad(loss.per_token.sum(), logprobs)
    through_ratio = -keep * advantage * p / q + 2e-3 * (p / q).log()
    assert gradient.tolist() == pytest.approx(through_ratio.tolist(), abs=1e-12)


def test_dppo_settings_reach_the_loss():
    p, q = torch.tensor([0.5]), torch.tensor([0.4])
    batch = TokenBatch(p.log(), q.log(), torch.tensor([2.0]))
    masked = build_loss("dppo_kl", dppo_mask_high=0.05, kl_tau=0.5)(batch).per_token.item()
    assert masked == pytest.approx(0.5 * math.log(1.25) ** 2, abs=1e-6)
    kept = build_loss("dppo_kl", adv_tau=3.0, kl_tau=0.0)(batch).per_token.item()
    assert kept == pytest.approx(-3.0 * 2.0 * 1.25, abs=1e-5)
