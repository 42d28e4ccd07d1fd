"""The tensors a loss takes: shapes, missing parts, settings, and numbers at the edge of float32."""

import subprocess
import sys
from functools import partial

import pytest
import torch

from stepcredit.losses import LOSSES, TokenBatch, build_loss, expected_update, required_fields
from stepcredit.losses.batch import weighted_score_loss, weighted_sum
from stepcredit.losses.score_centering import (
    centering_coefficients,
    tail_ratio,
    truncated_centering_coefficients,
)


def batch(**fields: torch.Tensor) -> TokenBatch:
    given = {"logprobs": torch.tensor([-1.0, -2.0]), "sampler_logprobs": torch.tensor([-1.0, -1.5])}
    return TokenBatch(**{**given, "advantages": torch.ones(2), **fields})


def full_batch(tokens: int = 6, head: int = 4, draws: int = 3) -> TokenBatch:
    generator = torch.Generator().manual_seed(0)

    def logprobs(*shape: int) -> torch.Tensor:
        return -0.5 - 3 * torch.rand(*shape, generator=generator)

    return TokenBatch(
        logprobs=logprobs(tokens).requires_grad_(),
        sampler_logprobs=logprobs(tokens),
        advantages=torch.randn(tokens, generator=generator),
        head_logprobs=(logprobs(tokens, head) - 1).requires_grad_(),
        head_sampler_logprobs=logprobs(tokens, head) - 1,
        draw_logprobs=logprobs(tokens, draws).requires_grad_(),
        draw_sampler_logprobs=logprobs(tokens, draws),
    )


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_returns_one_value_a_token_and_sums_without_graph(name):
    loss = build_loss(name)(full_batch())
    assert loss.per_token.shape == (6,)
    assert loss.per_token.requires_grad
    assert loss.per_token.dtype == torch.float32
    for key in ("ratio", "mismatch_kl", "weight", "masked"):
        assert loss.metrics[key].shape == ()
    assert not any(metric.requires_grad for metric in loss.metrics.values())


@pytest.mark.parametrize("name", LOSSES)
def test_microbatches_add_up_to_the_batch(name):
    whole = full_batch()
    fields = list(TokenBatch.__dataclass_fields__)
    halves = [
        TokenBatch(**{field: getattr(whole, field)[part] for field in fields}) for part in (slice(2), slice(2, 6))
    ]
    together = build_loss(name)(whole)
    apart = [build_loss(name)(half) for half in halves]
    torch.testing.assert_close(torch.cat([loss.per_token for loss in apart]), together.per_token)
    for key, total in together.metrics.items():
        torch.testing.assert_close(apart[0].metrics[key] + apart[1].metrics[key], total)


def test_metrics_are_sums_over_tokens():
    r = torch.tensor([0.25, 1.0, 6.0])
    q = torch.tensor([0.1, 0.1, 0.1])
    metrics = build_loss("mis")(TokenBatch((q * r).log(), q.log(), torch.ones(3))).metrics
    assert metrics["masked"].item() == 2
    assert metrics["ratio"].item() == pytest.approx(7.25, abs=1e-5)
    assert metrics["weight"].item() == pytest.approx(1.0, abs=1e-5)
    assert metrics["mismatch_kl"].item() == pytest.approx(float((r - r.log() - 1).sum()), abs=1e-5)


@pytest.mark.parametrize(
    ("name", "missing"),
    [("sc", "head_logprobs"), ("tis_sc", "head_logprobs"), ("sc_sampled", "draw_logprobs")],
)
def test_a_batch_without_what_the_loss_needs_is_refused(name, missing):
    with pytest.raises(ValueError, match=f"loss {name} needs {missing}"):
        build_loss(name)(batch())


def test_weighted_draws_need_the_samplers_log_probs():
    with pytest.raises(ValueError, match="tis_sc_sampled needs draw_sampler_logprobs"):
        build_loss("tis_sc_sampled")(batch(draw_logprobs=torch.zeros(2, 3)))


def test_required_fields_name_the_tensors():
    assert required_fields(LOSSES["reinforce"]) == ()
    assert required_fields(LOSSES["sc"]) == ("head_logprobs", "head_sampler_logprobs")
    assert required_fields(LOSSES["tis_sc_sampled"]) == ("draw_sampler_logprobs", "draw_logprobs")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"advantages": torch.ones(3)}, r"advantages must be \[2\] like logprobs; got \[3\]"),
        ({"logprobs": torch.zeros(2, 1)}, r"logprobs must be \[N\]"),
        ({"head_logprobs": torch.zeros(2, 3)}, "head_sampler_logprobs is missing"),
        ({"draw_sampler_logprobs": torch.zeros(2, 3)}, "draw_logprobs is missing"),
        ({"draw_logprobs": torch.zeros(3, 3)}, r"draw_logprobs must be \[2, at least 1\]"),
        (
            {"head_logprobs": torch.zeros(2, 3), "head_sampler_logprobs": torch.zeros(2, 4)},
            r"head_sampler_logprobs must be \[2, 3\] like head_logprobs; got \[2, 4\]",
        ),
    ],
)
def test_shapes_that_do_not_fit_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        batch(**fields)


def test_an_unknown_loss_or_setting_names_the_nearest():
    with pytest.raises(ValueError, match=r'"sc_sampel" is not a known loss; .*did you mean "sc_sampled"'):
        build_loss("sc_sampel")
    with pytest.raises(ValueError, match=r'dppo_kl has no setting "kl_tua"; .*did you mean "kl_tau"'):
        build_loss("dppo_kl", kl_tua=1.0)
    with pytest.raises(ValueError, match='loss sc has no setting "cap"; it has none'):
        build_loss("sc", cap=2.0)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("tis", {"cap": 0.0}),
        ("tis_sc", {"cap": -1.0}),
        ("mis", {"low": 6.0}),
        ("ppo_clip", {"epsilon_low": -0.1}),
    ],
)
def test_settings_out_of_range_are_refused(name, settings):
    with pytest.raises(ValueError, match=name if "cap" not in settings else "cap"):
        build_loss(name, **settings)


def test_rho_is_one_where_the_head_holds_everything():
    p = torch.tensor([[0.6, 0.4], [1.0, 0.0], [0.6, 0.3999999]])
    q = torch.tensor([[0.5, 0.5], [0.9, 0.1], [0.5, 0.4999999]])
    assert tail_ratio(p.log(), q.log()).tolist() == [1.0, 1.0, 1.0]


def test_rho_is_zero_not_negative_where_rounding_leaves_the_sampler_no_tail():
    p, q = torch.tensor([[0.5, 0.3]]), torch.tensor([[0.7, 0.3000003]])
    assert tail_ratio(p.log(), q.log()).tolist() == [0.0]


def test_weights_and_coefficients_carry_no_gradient():
    logprobs = torch.tensor([-1.0, -2.0], requires_grad=True)
    weighted = weighted_score_loss(batch(logprobs=logprobs), weight=logprobs.exp())
    (gradient,) = torch.autograd.grad(weighted.sum(), logprobs)
    torch.testing.assert_close(gradient, -logprobs.detach().exp())  # -A w, without the derivative of w
    head = torch.tensor([[-1.0, -2.0]], requires_grad=True)
    (gradient,) = torch.autograd.grad(weighted_sum(head.exp(), head).sum(), head)
    torch.testing.assert_close(gradient, head.detach().exp())


def test_rounding_of_float32_heads_never_makes_a_negative_or_huge_rho():
    logits = 8 * torch.randn(2000, 16, generator=torch.Generator().manual_seed(0))
    noise = 0.01 * torch.randn(2000, 16, generator=torch.Generator().manual_seed(1))
    p, q = logits.log_softmax(1), (logits + noise).log_softmax(1)
    head = q.topk(12, dim=1).indices
    rho = tail_ratio(p.gather(1, head), q.gather(1, head))
    assert rho.isfinite().all()
    assert (rho >= 0).all()
    assert rho.max() < 1.2


def test_a_row_padded_with_minus_infinity_is_a_shorter_head():
    infinity = float("inf")
    p, q = torch.tensor([[0.5, 0.3]]).log(), torch.tensor([[0.6, 0.2]]).log()
    pad = torch.full((1, 1), -infinity)
    for coefficients in (centering_coefficients, partial(truncated_centering_coefficients, cap=2.0)):
        padded = coefficients(torch.cat([p, pad], 1), torch.cat([q, pad], 1))
        torch.testing.assert_close(padded[:, :2], coefficients(p, q))
        assert padded[0, 2] == 0
    head = torch.cat([p, pad], 1).requires_grad_()
    token = {"logprobs": p[:, 0], "sampler_logprobs": q[:, 0], "advantages": torch.ones(1)}
    loss = build_loss("sc")(TokenBatch(**token, head_logprobs=head, head_sampler_logprobs=torch.cat([q, pad], 1)))
    short = build_loss("sc")(TokenBatch(**token, head_logprobs=p, head_sampler_logprobs=q))
    torch.testing.assert_close(loss.per_token, short.per_token)
    (gradient,) = torch.autograd.grad(loss.per_token.sum(), head)
    assert gradient.isfinite().all()


def test_a_head_token_that_the_sampler_never_draws_only_joins_the_tail():
    # top-p sampling returns -inf for dropped tokens: q_v = 0, so c_v = -rho p_v (weighted: -alpha p_v)
    p, q = torch.tensor([[0.5, 0.3]]).log(), torch.tensor([[0.9, 0.0]]).log()
    assert centering_coefficients(p, q)[0].tolist() == pytest.approx([0.9 - 0.5 * 0.5, -0.15], abs=1e-6)
    weighted = truncated_centering_coefficients(p, q, 2.0)[0].tolist()
    assert weighted == pytest.approx([0.0, -0.3], abs=1e-6)  # min(.5, 1.8) - 1 * .5; alpha = min(1, 2 * .5) = 1


def test_expected_update_refuses_what_is_no_distribution():
    with pytest.raises(ValueError, match="q must be a distribution"):
        expected_update(build_loss("is"), torch.tensor([0.5, 0.5]), torch.tensor([0.6, 0.6]), 1.0)
    with pytest.raises(ValueError, match="p must be positive"):
        expected_update(build_loss("is"), torch.tensor([1.0, 0.0]), torch.tensor([0.5, 0.5]), 1.0)


def test_losses_import_nothing_of_the_project_but_themselves():
    code = """
import sys, stepcredit.losses
above = [m for m in sys.modules if m.startswith("stepcredit.") and not m.startswith("stepcredit.losses")]
print(above + [m for m in ("transformers", "vllm", "pydantic") if m in sys.modules])
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
