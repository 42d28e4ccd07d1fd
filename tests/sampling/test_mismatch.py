import pytest
import torch

from stepcredit.modeling.model import build_model
from stepcredit.modeling.tokenizer import TextCodec, build_tokenizer
from stepcredit.rollouts import Completion
from stepcredit.sampling.mismatch import MismatchedSampler, distorted, fake_quantised, noisy
from stepcredit.settings.mismatch import MismatchSettings
from stepcredit.settings.model import ModelSettings

CODEC = TextCodec(build_tokenizer(20))
SMALL = ModelSettings(
    hidden_size=32, layers=1, intermediate_size=64, attention_heads=2, key_value_heads=1, head_dim=32, max_positions=64
)
INT4 = MismatchSettings(name="int4", label="INT4", weights="int4")


class Pushed:
    """A sampler that keeps the weights of each push."""

    def __init__(self):
        self.weights = []

    def push_weights(self, model):
        self.weights.append({name: weight.detach().clone() for name, weight in model.named_parameters()})


def pushes(mismatch, count, seed=0):
    """The trainer's weights at each of `count` pushes, and what a sampler got."""
    model, exact = build_model(SMALL, CODEC, seed=0), Pushed()
    sampler = MismatchedSampler(exact, mismatch, seed)
    sent = []
    for _ in range(count):
        sent.append({name: weight.detach().clone() for name, weight in model.named_parameters()})
        sampler.push_weights(model)
        after = dict(model.named_parameters())
        assert all(torch.equal(after[name], weight) for name, weight in sent[-1].items())  # the trainer stays exact
        with torch.no_grad():
            for weight in model.parameters():
                weight.add_(0.01)
    return sent, exact.weights


def test_each_row_is_rounded_to_its_own_scale():
    # int4 has steps -7..7: a row with largest 7 has scale 1, one with largest 0.7 has scale 0.1
    weight = torch.tensor([[7.0, 2.4, -2.6, 0.4], [0.7, 0.24, -0.26, 0.0]])
    expected = torch.tensor([[7.0, 2.0, -3.0, 0.0], [0.7, 0.2, -0.3, 0.0]])
    torch.testing.assert_close(fake_quantised(weight, 4), expected)
    torch.testing.assert_close(fake_quantised(torch.zeros(2, 3), 4), torch.zeros(2, 3))


@pytest.mark.parametrize("bits", [4, 8])
def test_rounding_moves_no_weight_by_more_than_half_a_step_and_a_second_time_by_nothing(bits):
    weight = torch.randn(16, 32, generator=torch.Generator().manual_seed(0))
    rounded = fake_quantised(weight, bits)
    step = weight.abs().amax(dim=1, keepdim=True) / (2 ** (bits - 1) - 1)
    assert ((rounded - weight).abs() <= step / 2 + 1e-6).all()
    assert len(rounded[0].unique()) <= 2**bits - 1
    torch.testing.assert_close(fake_quantised(rounded, bits), rounded)


def test_noise_is_in_units_of_the_spread_of_the_weights():
    weight = 3 * torch.randn(200, 200, generator=torch.Generator().manual_seed(0))
    added = noisy(weight, 0.1, seed=1) - weight
    assert added.std().item() == pytest.approx(0.1 * weight.std().item(), rel=0.02)
    assert torch.equal(noisy(weight, 0.1, seed=1), noisy(weight, 0.1, seed=1))
    assert not torch.equal(noisy(weight, 0.1, seed=1), noisy(weight, 0.1, seed=2))


def test_the_embedding_is_rounded_only_where_asked_and_norms_never():
    weight = torch.randn(8, 8, generator=torch.Generator().manual_seed(0))
    assert torch.equal(distorted("model.embed_tokens.weight", weight, INT4, 0), weight)
    assert not torch.equal(distorted("model.layers.0.mlp.up_proj.weight", weight, INT4, 0), weight)
    both = INT4.model_copy(update={"embedding": True, "noise": 0.5})
    assert not torch.equal(distorted("model.embed_tokens.weight", weight, both, 0), weight)
    assert torch.equal(distorted("model.norm.weight", weight[0], both, 0), weight[0])


def test_the_sampler_gets_rounded_weights_at_every_push_and_the_trainer_keeps_its_own():
    sent, got = pushes(INT4, 2)
    name = "model.layers.0.mlp.up_proj.weight"
    for exact, wrong in zip(sent, got, strict=True):
        torch.testing.assert_close(wrong[name], fake_quantised(exact[name], 4))
        assert torch.equal(wrong["model.norm.weight"], exact["model.norm.weight"])


def test_noise_is_drawn_anew_at_each_push_and_the_same_for_the_same_seed():
    noise = MismatchSettings(name="noise", label="noise", noise=0.2)
    name = "model.layers.0.mlp.up_proj.weight"
    (sent, first), (_, again), (_, other) = pushes(noise, 2), pushes(noise, 2), pushes(noise, 2, seed=1)
    added = [wrong[name] - exact[name] for exact, wrong in zip(sent, first, strict=True)]
    assert not torch.allclose(added[0], added[1], atol=1e-3)
    assert torch.equal(first[1][name], again[1][name])
    assert not torch.equal(first[1][name], other[1][name])


def test_a_stale_sampler_is_refreshed_at_every_third_push_with_exact_weights():
    sent, got = pushes(MismatchSettings(name="stale", label="stale", refresh_every=3), 7)
    assert len(got) == 3
    for push, wrong in zip((0, 3, 6), got, strict=True):
        assert all(torch.equal(wrong[name], weight) for name, weight in sent[push].items())


def test_a_combination_is_stale_and_rounded():
    sent, got = pushes(INT4.model_copy(update={"refresh_every": 2}), 3)
    name = "model.layers.0.mlp.up_proj.weight"
    torch.testing.assert_close(got[1][name], fake_quantised(sent[2][name], 4))
    assert len(got) == 2


def test_generation_is_that_of_the_wrapped_sampler():
    class Echo(Pushed):
        def generate(self, prompts, **arguments):
            self.arguments = arguments
            return [Completion(tuple(prompt), (), True) for prompt in prompts]

    echo = Echo()
    sampler = MismatchedSampler(echo, INT4, 0)
    [completion] = sampler.generate([[1, 2]], seeds=[3], temperature=0.5, max_new_tokens=4)
    assert completion == Completion((1, 2), (), True)
    arguments = echo.arguments
    assert (arguments["seeds"], arguments["temperature"], arguments["max_new_tokens"]) == ([3], 0.5, 4)


def test_a_stale_sampler_says_how_many_updates_it_is_behind():
    class One(Pushed):
        def generate(self, prompts, **arguments):
            return [Completion((1,), (0.0,), True)]

    sampler = MismatchedSampler(One(), MismatchSettings(name="stale", label="stale", refresh_every=3), 0)
    model, lags = build_model(SMALL, CODEC, seed=0), []
    for _ in range(5):
        sampler.push_weights(model)
        lags += [c.lag for c in sampler.generate([[1]], seeds=[0], temperature=1.0, max_new_tokens=1)]
    assert lags == [0, 1, 2, 0, 1]
