import copy
import random

import numpy as np
import pytest
import torch

from stepcredit.losses import build_loss
from stepcredit.losses.agreement import outside_band
from stepcredit.modeling.logprobs import packed_logits, token_logprobs
from stepcredit.modeling.model import build_model
from stepcredit.modeling.tokenizer import TextCodec, build_tokenizer
from stepcredit.settings.model import ModelSettings, OptimizerSettings
from stepcredit.settings.rl import RLSettings
from stepcredit.training.optimizer import build_optimizer
from stepcredit.training.policy_update import PolicyUpdate, Sample

CODEC = TextCodec(build_tokenizer(20))
SMALL = ModelSettings(
    hidden_size=32, layers=2, intermediate_size=64, attention_heads=2, key_value_heads=1, head_dim=32, max_positions=64
)


def policy(settings: RLSettings):
    model = build_model(SMALL, CODEC, seed=0)
    optimizer = build_optimizer(model, OptimizerSettings(), 1e-3)
    return model, PolicyUpdate(model, optimizer, build_loss("dppo_kl"), settings)


def samples(model, advantages, temperature=1.0):
    """On-policy samples of different lengths, one for each advantage."""
    rng = random.Random(0)
    made = []
    for advantage in advantages:
        prompt = [rng.randrange(20) for _ in range(4)]
        completion = [rng.randrange(20) for _ in range(rng.randint(3, 12))]
        with torch.no_grad():
            logits, tokens = packed_logits(model, [(prompt, completion)])
            logprobs = token_logprobs(logits / temperature, tokens).tolist()
        made.append(Sample(prompt, completion, logprobs, np.full(len(completion), advantage, dtype=np.float32)))
    return made


def weights(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def test_the_update_does_not_depend_on_how_the_batch_is_cut():
    updated = []
    for rows in (16, 64, 10_000):
        model, update = policy(RLSettings(tokens_per_microbatch=rows))
        update.step(samples(model, [0.5, -0.5, 0.25, -0.25, 0.75]), 1e-3)
        updated.append(weights(model))
    torch.testing.assert_close(updated[0], updated[1], atol=2e-5, rtol=0)
    torch.testing.assert_close(updated[0], updated[2], atol=2e-5, rtol=0)


def test_gradient_checkpointing_changes_nothing_but_memory():
    updated = []
    for checkpointing in (False, True):
        model, update = policy(RLSettings(gradient_checkpointing=checkpointing))
        update.step(samples(model, [0.5, -0.5, 0.25]), 1e-3)
        updated.append(weights(model))
    torch.testing.assert_close(updated[0], updated[1], atol=0, rtol=0)


def test_a_positive_advantage_makes_its_tokens_more_likely_and_a_negative_one_less():
    model, update = policy(RLSettings())
    batch = samples(model, [1.0, -1.0])
    before = [sum(sample.sampler_logprobs) for sample in batch]
    update.step(batch, 1e-3)
    with torch.no_grad():
        after = [
            token_logprobs(*packed_logits(model, [(sample.prompt_ids, sample.completion_ids)])).sum().item()
            for sample in batch
        ]
    assert after[0] > before[0]
    assert after[1] < before[1]


def test_the_loss_is_divided_by_the_tokens_that_are_trained():
    model, update = policy(RLSettings())
    batch = samples(model, [1.0, 0.0])
    metrics = update.step(batch, 1e-3)
    assert metrics["trained_tokens"] == len(batch[0].completion_ids)
    assert metrics["loss"] == pytest.approx(-1.0, abs=1e-5)  # on policy: the mean of -A r, with r = 1
    keeping, keeping_update = policy(RLSettings(filter_zero_advantages=False))
    kept = keeping_update.step(samples(keeping, [1.0, 0.0]), 1e-3)
    assert kept["trained_tokens"] == sum(len(sample.completion_ids) for sample in batch)
    assert kept["loss"] == pytest.approx(-len(batch[0].completion_ids) / kept["trained_tokens"], abs=1e-5)


def test_without_any_advantage_nothing_changes():
    model, update = policy(RLSettings())
    before = copy.deepcopy(weights(model))
    metrics = update.step(samples(model, [0.0, 0.0]), 1e-3)
    assert torch.equal(before, weights(model))
    assert metrics["trained_tokens"] == 0
    assert metrics["grad_norm"] == 0.0
    assert np.isnan(metrics["mean_ratio"])


def test_on_policy_the_ratio_is_one_at_any_temperature():
    model, update = policy(RLSettings(temperature=0.7))
    metrics = update.step(samples(model, [1.0, -1.0], temperature=0.7), 1e-3)
    assert metrics["mean_ratio"] == pytest.approx(1.0, abs=1e-6)
    assert metrics["effective_sample_size"] == pytest.approx(1.0, abs=1e-6)
    assert metrics["max_log_ratio"] < 1e-5
    assert metrics["clipped"] == 0.0


def test_a_wrong_sampler_shows_in_every_mismatch_metric():
    model, update = policy(RLSettings())
    wrong = [
        Sample(s.prompt_ids, s.completion_ids, [value - 1.0 for value in s.sampler_logprobs], s.advantages)
        for s in samples(model, [1.0, -1.0])
    ]
    metrics = update.step(wrong, 1e-3)
    assert metrics["mean_ratio"] == pytest.approx(np.e, rel=1e-4)
    assert metrics["mismatch_kl"] == pytest.approx(np.e - 2, rel=1e-4)  # r - log r - 1 with log r = 1
    assert metrics["max_log_ratio"] == pytest.approx(1.0, abs=1e-4)
    assert metrics["mean_log_ratio"] == pytest.approx(1.0, abs=1e-4)
    assert metrics["clipped"] == metrics["far"] == 1.0
    assert metrics["effective_sample_size"] == pytest.approx(1.0, abs=1e-5)  # all ratios are equal


def test_the_entropy_gap_is_what_the_sampler_says_less_what_the_trainer_has():
    model, update = policy(RLSettings())
    batch = samples(model, [1.0, -1.0])
    said = -np.mean([value for sample in batch for value in sample.sampler_logprobs])
    metrics = update.step(batch, 1e-3)
    assert metrics["entropy_gap"] == pytest.approx(said - metrics["entropy"], abs=1e-5)


def test_a_token_that_the_sampler_holds_impossible_is_counted_and_leaves_the_noise_band():
    model, update = policy(RLSettings())
    right, other = samples(model, [1.0, -1.0])
    torn = Sample(right.prompt_ids, right.completion_ids, [-np.inf, *right.sampler_logprobs[1:]], right.advantages)
    metrics = update.step([torn, other], 1e-3)
    assert metrics["impossible"] == pytest.approx(1 / metrics["trained_tokens"])
    assert any("impossible" in problem for problem in outside_band(metrics, "float32"))
