"""Every loss's gradient, in logit space, against the formula written out by hand."""

import pytest
import torch
from torch import Tensor

from stepcredit.losses import LOSSES, TokenBatch, build_loss, expected_update

VOCABULARY, HEAD, DRAWS = 12, 5, 8


def distribution(seed: int, spread: float = 1.5) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (spread * torch.randn(VOCABULARY, generator=generator, dtype=torch.float64)).softmax(0)


class Position:
    """One position with its logits, and the batch that a trainer would make of it."""

    def __init__(self, seed: int, advantage: float, same: bool = False, head: int = HEAD) -> None:
        generator = torch.Generator().manual_seed(1000 + seed)
        self.p = distribution(seed)
        self.q = self.p if same else distribution(seed + 500)
        self.token = int(torch.multinomial(self.q, 1, generator=generator))
        self.draws = torch.multinomial(self.q, DRAWS, replacement=True, generator=generator)
        self.head = self.q.topk(head).indices
        self.advantage = advantage
        self.ratio = self.p / self.q

    def logit_gradient(self, name: str) -> Tensor:
        logits = self.p.log().requires_grad_()
        logprobs, sampler = logits.log_softmax(0), self.q.log()
        batch = TokenBatch(
            logprobs=logprobs[self.token][None],
            sampler_logprobs=sampler[self.token][None],
            advantages=torch.tensor([self.advantage], dtype=torch.float64),
            head_logprobs=logprobs[self.head][None],
            head_sampler_logprobs=sampler[self.head][None],
            draw_logprobs=logprobs[self.draws][None],
            draw_sampler_logprobs=sampler[self.draws][None],
        )
        return torch.autograd.grad(build_loss(name)(batch).per_token.sum(), logits)[0]

    def one_hot(self, token: int) -> Tensor:
        return torch.eye(VOCABULARY, dtype=torch.float64)[token]

    def score(self, token: int) -> Tensor:
        return self.one_hot(token) - self.p

    def estimate(self) -> tuple[Tensor, float]:
        """q-hat: the sampler's head, the trainer's tail rescaled; and rho."""
        inside = torch.zeros(VOCABULARY, dtype=torch.bool)
        inside[self.head] = True
        rho = float((1 - self.q[inside].sum()) / (1 - self.p[inside].sum()))
        return torch.where(inside, self.q, rho * self.p), rho


def by_hand(position: Position, name: str) -> Tensor:
    """-dL/dz divided by the advantage."""
    token, r, A = position.token, float(position.ratio[position.token]), position.advantage
    score = position.score(token)
    if name in ("reinforce", "is", "tis", "mis"):
        weight = {"reinforce": 1, "is": r, "tis": min(r, 2), "mis": r if 0.5 <= r <= 5 else 0}[name]
        return weight * score
    if name == "sc":
        return position.one_hot(token) - position.estimate()[0]
    if name == "sc_sampled":
        return position.one_hot(token) - torch.stack([position.one_hot(v) for v in position.draws]).mean(0)
    if name == "tis_sc":
        estimate, _ = position.estimate()
        weights = (position.p / estimate).clamp(max=2)
        scores = torch.stack([position.score(v) for v in range(VOCABULARY)])
        return min(r, 2) * score - (estimate * weights) @ scores
    if name == "tis_sc_sampled":
        terms = [min(float(position.ratio[v]), 2) * position.score(int(v)) for v in position.draws]
        return min(r, 2) * score - torch.stack(terms).mean(0)
    if name == "ppo_clip":
        return (0 if (A > 0 and r > 1.2) or (A < 0 and r < 0.8) else r) * score
    assert name == "dppo_kl"
    difference = float((position.p - position.q)[token])
    keep = not (difference > 0.2 if A > 0 else difference < -0.2)
    log_ratio = float(position.ratio[token].log())
    return (keep * r - 2e-3 * log_ratio / A) * score


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("advantage", [1.0, -0.5])
def test_logit_gradient_is_the_formula_of_the_table(name, advantage):
    for seed in range(20):
        position = Position(seed, advantage)
        torch.testing.assert_close(
            -position.logit_gradient(name), advantage * by_hand(position, name), rtol=0, atol=1e-10
        )


@pytest.mark.parametrize("advantage", [1.0, -0.5])
def test_ppo_clip_has_the_gradient_of_the_clipped_objective(advantage):
    for seed in range(20):
        position = Position(seed, advantage)
        logits = position.p.log().requires_grad_()
        ratio = logits.softmax(0)[position.token] / position.q[position.token]
        objective = torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
        (expected,) = torch.autograd.grad(-objective, logits)
        torch.testing.assert_close(position.logit_gradient("ppo_clip"), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["is", "tis", "mis", "ppo_clip", "dppo_kl", "sc", "tis_sc"])
def test_without_mismatch_every_method_is_reinforce(name):
    for seed in range(5):
        position = Position(seed, -0.7, same=True)
        torch.testing.assert_close(
            position.logit_gradient(name), position.logit_gradient("reinforce"), rtol=0, atol=1e-12
        )


def test_a_head_of_the_whole_vocabulary_is_exact_centering():
    for seed in range(5):
        position = Position(seed, 1.0, head=VOCABULARY)
        exact = position.one_hot(position.token) - position.q
        torch.testing.assert_close(-position.logit_gradient("sc"), exact, rtol=0, atol=1e-12)


def test_centering_error_shrinks_as_the_head_grows():
    p, q = distribution(3), distribution(503)
    drifts = [float(expected_update(build_loss("sc"), p, q, 1.0, head_size=k).abs().sum()) for k in (1, 4, 8, 11)]
    assert drifts == sorted(drifts, reverse=True)
    assert drifts[0] > 1e-3
    assert drifts[-1] < 1e-12  # a tail of one token leaves nothing to guess


def test_sampled_centering_moves_only_the_sampled_token_and_its_draws():
    position = Position(7, 1.0)
    touched = (position.logit_gradient("sc_sampled").abs() > 1e-12).nonzero().flatten().tolist()
    assert set(touched) <= {position.token, *position.draws.tolist()}
    assert len(touched) < VOCABULARY
    assert (position.logit_gradient("reinforce").abs() > 1e-12).all()


@pytest.mark.parametrize(("sampled", "exact"), [("sc_sampled", "sc"), ("tis_sc_sampled", "tis_sc")])
def test_sampled_centering_is_unbiased(sampled, exact):
    p, q, reward = distribution(1), distribution(501), distribution(9) * 3 - 1
    torch.testing.assert_close(
        expected_update(build_loss(sampled), p, q, reward),
        expected_update(build_loss(exact), p, q, reward),
        rtol=0,
        atol=1e-12,
    )


def test_expected_update_splits_into_drift_and_signal():
    p, q, reward = distribution(2), distribution(502), distribution(8) * 5
    score = torch.eye(VOCABULARY, dtype=torch.float64) - p
    drift = (q * reward).sum() * (q - p)
    signal = (q * reward) @ score - drift
    torch.testing.assert_close(expected_update(build_loss("reinforce"), p, q, reward), drift + signal)
    torch.testing.assert_close(expected_update(build_loss("sc"), p, q, reward), signal, rtol=0, atol=1e-12)
