"""A loss is known by its gradient: recovery through an optimiser step, the probes' reach, the naming."""

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
import torch

from stepcredit.losses import LOSSES, TokenBatch, TokenLoss, build_loss
from stepcredit.studies.fingerprint import (
    TOLERANCE,
    Adapter,
    distance,
    fingerprint,
    hidden_step,
    identify,
    one_token_gradients,
    predicted_gradient,
    recovered_gradient,
)
from stepcredit.studies.probe import PROBES, VOCABULARY, probe_model


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_is_named_on_twenty_random_models(name):
    for seed in range(20):
        result = fingerprint(name, seed)
        runner_up = list(result.distances.values())[1]
        assert result.named == name, f"seed {seed}: {dict(result.distances)}"
        assert result.distance < 1e-9
        assert runner_up > 5 * TOLERANCE, f"seed {seed}: too near to {list(result.distances)[1]}"


@pytest.mark.parametrize("name", LOSSES)
def test_one_step_recovers_the_whole_logit_gradient(name):
    model = probe_model(3)
    for probe in model.probes:
        recovered = recovered_gradient(hidden_step(build_loss(name)), model, probe)
        expected = predicted_gradient(build_loss(name), model, probe)
        torch.testing.assert_close(recovered, expected, rtol=1e-9, atol=1e-12)


def test_a_step_moves_b_alone_since_b_starts_at_zero():
    model = probe_model(0)
    after = hidden_step(build_loss("reinforce"))(model, model.probes[0])
    assert torch.equal(after.A, model.adapter.A)
    assert bool((after.B != 0).all())


def test_adam_with_its_usual_epsilon_would_show_signs_only():
    model, probe = probe_model(0), probe_model(0).probes[0]
    b = model.adapter.B.clone().requires_grad_()
    optimizer = torch.optim.Adam([b], lr=1.0)
    logits = model.logits(probe, Adapter(model.adapter.A, b))
    build_loss("reinforce")(probe.batch(logits)).per_token.sum().backward()
    optimizer.step()
    assert b.detach().abs().flatten().tolist() == pytest.approx([1.0] * VOCABULARY, abs=1e-3)


def test_a_service_in_float32_is_named_too():
    def step(model, probe):
        single = replace(
            model,
            unembedding=model.unembedding.float(),
            adapter=Adapter(model.adapter.A.float(), model.adapter.B.float()),
        )
        small = replace(probe, hidden=probe.hidden.float(), sampler_logprobs=probe.sampler_logprobs.float())
        after = hidden_step(build_loss("tis_sc"))(single, small)
        return Adapter(after.A.double(), after.B.double())

    result = identify(step, probe_model(1))
    assert result.named == "tis_sc"
    assert 0 < result.distance < 1e-5


def test_the_scale_of_the_loss_is_forgiven():
    @dataclass(frozen=True)
    class Divided:
        name: ClassVar[str] = "divided"
        label: ClassVar[str] = "TIS divided by 7"
        needs: ClassVar[frozenset[str]] = frozenset()

        def __call__(self, batch: TokenBatch) -> TokenLoss:
            loss = build_loss("tis")(batch)
            return TokenLoss(loss.per_token / 7, loss.metrics)

    assert identify(hidden_step(Divided()), probe_model(0)).named == "tis"


@pytest.mark.parametrize(("name", "settings"), [("tis", {"cap": 3.0}), ("ppo_clip", {"epsilon_high": 0.6})])
def test_a_loss_outside_the_family_is_named_unknown(name, settings):
    result = identify(hidden_step(build_loss(name, **settings)), probe_model(0))
    assert result.named == "unknown"
    assert result.distance > TOLERANCE


def test_a_loss_of_opposite_sign_is_not_the_same_loss():
    gradient = torch.tensor([[1.0, -2.0], [0.5, 0.5]])
    assert distance(gradient, 3 * gradient) == pytest.approx(0.0, abs=1e-7)
    assert distance(gradient, -gradient) == pytest.approx(1.0)
    # 3 (1, 0) + (0, 4) against (1, 0): the residual 4 of 5
    assert distance(torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, 0.0]])) == pytest.approx(0.8)
    assert distance(torch.zeros(1, 2), gradient) == 1.0
    assert distance(gradient, torch.zeros(2, 2)) == 1.0
    assert distance(torch.zeros(1, 2), torch.zeros(1, 2)) == 0.0


def test_probes_have_the_probabilities_of_their_table():
    for seed in range(20):
        model = probe_model(seed)
        for probe, (p, q, advantage) in zip(model.probes, PROBES, strict=True):
            logprobs = model.logits(probe, model.adapter).log_softmax(0)
            assert float(logprobs[probe.token].exp()) == pytest.approx(p, abs=1e-9)
            assert float(probe.sampler_logprobs[probe.token].exp()) == pytest.approx(q, abs=1e-9)
            assert float(probe.sampler_logprobs.exp().sum()) == pytest.approx(1.0)
            assert probe.advantage == advantage


def test_probes_lie_on_both_sides_of_every_bound():
    ratios = [p / q for p, q, _ in PROBES]
    assert min(ratios) < 0.5
    assert max(ratios) > 5
    assert any(2 < ratio < 5 for ratio in ratios)
    for sign in (1, -1):
        own = [(p / q, p - q) for p, q, advantage in PROBES if advantage == sign]
        assert any(ratio > 1.2 for ratio, _ in own)
        assert any(ratio < 0.8 for ratio, _ in own)
        assert any(difference > 0.2 for _, difference in own)
        assert any(difference < -0.2 for _, difference in own)


def test_sampled_centering_touches_the_token_and_its_draws_where_reinforce_touches_all():
    reinforce, top_k, sampled = one_token_gradients(seed=2)
    assert [reinforce.loss, top_k.loss, sampled.loss] == ["reinforce", "sc", "sc_sampled"]
    assert len(reinforce.touched) == len(top_k.touched) == VOCABULARY
    assert set(sampled.touched) == {sampled.token, *sampled.draws}
    assert len(sampled.touched) <= 9
    share = sampled.draws.count(sampled.token) / 8
    assert float(sampled.gradient[sampled.token]) == pytest.approx(1 - share, abs=1e-9)
    other = next(draw for draw in sampled.draws if draw != sampled.token)
    assert float(sampled.gradient[other]) == pytest.approx(-sampled.draws.count(other) / 8, abs=1e-9)
