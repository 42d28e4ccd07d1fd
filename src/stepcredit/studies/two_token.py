"""The two-token model: a vocabulary {A, B}, and how each method moves A's logit on average.

B's logit always moves by the negative. Exact expectations, so that variance does not show. Source: SC, "A
two-token example" and "Try it".
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from stepcredit.losses import Loss, build_loss, expected_update, on_policy_update

METHODS = ("reinforce", "is", "tis", "mis", "ppo_clip", "dppo_kl", "sc", "tis_sc")
"""The family without its sampled forms, whose expectation is that of the exact ones."""


@dataclass(frozen=True)
class Setting:
    """Where the sliders stand.

    Attributes:
        p: trainer's probability of A.
        q: sampler's probability of A.
        reward_a, reward_b: advantage of each token.
        cap: largest importance weight of TIS, and of TIS + score centering.
    """

    p: float = 0.5
    q: float = 0.6
    reward_a: float = 1.0
    reward_b: float = 1.0
    cap: float = 2.0


SLIGHTLY_OFF = Setting()
SKEWED = Setting(q=0.9)
A_IS_BETTER = Setting(q=0.9, reward_b=0.0)


SLACK = 1e-9
"""How far past a bound still counts as on it: sliders stand on bounds (0.5 / 0.1 is MIS's 5), where rounding
would decide otherwise."""

BOUNDS: dict[str, dict[str, float]] = {
    "mis": {"low": 0.5 - SLACK, "high": 5.0 + SLACK},
    "ppo_clip": {"epsilon_low": 0.2 + SLACK, "epsilon_high": 0.2 + SLACK},
    "dppo_kl": {"dppo_mask_low": 0.2 + SLACK, "dppo_mask_high": 0.2 + SLACK},
}


def method_loss(method: str, cap: float) -> Loss:
    """The method's loss at its published settings (SLACK apart), but for the cap on TIS."""
    settings = {"cap": cap} if method in ("tis", "tis_sc") else BOUNDS.get(method, {})
    return build_loss(method, **settings)


def push(method: str, setting: Setting) -> float:
    """Expected update of A's logit under a method.

    sum_y q_y R_y (w_y s_y - c), with s_A = 1 - p, s_B = -p, and c = sum_v q_v w_v s_v where the method
    centers, else 0.
    """
    p, q, rewards = _tensors(setting)
    return float(expected_update(method_loss(method, setting.cap), p, q, rewards)[0])


def target(setting: Setting) -> float:
    """The update of A's logit without mismatch: p (1 - p) (R_A - R_B)."""
    p, _, rewards = _tensors(setting)
    return float(on_policy_update(p, rewards)[0])


def _tensors(setting: Setting) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    pairs = (
        (setting.p, 1 - setting.p),
        (setting.q, 1 - setting.q),
        (setting.reward_a, setting.reward_b),
    )
    p, q, rewards = (torch.tensor(pair, dtype=torch.float64) for pair in pairs)
    return p, q, rewards
