import dataclasses
import random

import numpy as np
import pytest
import torch

from stepcredit.losses import LOSSES, build_loss
from stepcredit.modeling.logprobs import packed_logits
from stepcredit.modeling.model import build_model
from stepcredit.modeling.tokenizer import TextCodec, build_tokenizer
from stepcredit.rollouts import Candidates
from stepcredit.settings.model import ModelSettings
from stepcredit.settings.rl import RLSettings
from stepcredit.training.policy_update import PolicyUpdate
from stepcredit.training.token_batch import Sample, needed_recording, token_batch

CODEC = TextCodec(build_tokenizer(20))
SMALL = ModelSettings(
    hidden_size=32, layers=2, intermediate_size=64, attention_heads=2, key_value_heads=1, head_dim=32, max_positions=64
)


def on_policy_samples(model, advantages, head=None, draws=None):
    """Samples whose sampler is the model itself, with its top-k and draws from it."""
    rng, generator = random.Random(0), torch.Generator().manual_seed(0)
    made = []
    for advantage in advantages:
        prompt, completion = (
            [rng.randrange(20) for _ in range(4)],
            [rng.randrange(20) for _ in range(rng.randint(3, 9))],
        )
        with torch.no_grad():
            logits, tokens = packed_logits(model, [(prompt, completion)])
        logprobs = logits.log_softmax(-1)
        made.append(
            Sample(
                prompt,
                completion,
                logprobs.gather(1, tokens[:, None])[:, 0].tolist(),
                np.full(len(completion), advantage, dtype=np.float32),
                noted(logprobs, logprobs.topk(head).indices) if head else None,
                noted(logprobs, torch.multinomial(logprobs.exp(), draws, True, generator=generator)) if draws else None,
            )
        )
    return made


def noted(logprobs, tokens):
    return Candidates(tokens.numpy(), logprobs.gather(1, tokens).numpy())


def update(name, samples_of, **settings):
    """Weights after one step, and what it logged."""
    model = build_model(SMALL, CODEC, seed=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    policy = PolicyUpdate(model, optimizer, build_loss(name), RLSettings(**settings))
    metrics = policy.step(samples_of(model), 0.5)
    return torch.cat([weight.detach().flatten() for weight in model.parameters()]), metrics


def test_each_kept_token_gets_the_trainers_log_probs_of_its_own_head_and_draws():
    model = build_model(SMALL, CODEC, seed=0)
    samples = on_policy_samples(model, [1.0, -1.0, 0.5], head=5, draws=3)
    logits, targets = packed_logits(model, [(s.prompt_ids, s.completion_ids) for s in samples])
    kept = torch.arange(len(targets)) % 2 == 0
    batch = token_batch(logits[kept], targets, kept, samples)
    # the sampler is the trainer, so both sides must agree position by position
    torch.testing.assert_close(batch.logprobs, batch.sampler_logprobs, atol=1e-5, rtol=0)
    torch.testing.assert_close(batch.head_logprobs, batch.head_sampler_logprobs, atol=1e-5, rtol=0)
    torch.testing.assert_close(batch.draw_logprobs, batch.draw_sampler_logprobs, atol=1e-5, rtol=0)
    assert batch.head_logprobs.shape == (int(kept.sum()), 5)
    assert batch.draw_logprobs.shape == (int(kept.sum()), 3)


def test_without_candidates_there_are_none():
    model = build_model(SMALL, CODEC, seed=0)
    samples = on_policy_samples(model, [1.0])
    logits, targets = packed_logits(model, [(s.prompt_ids, s.completion_ids) for s in samples])
    batch = token_batch(logits, targets, torch.ones(len(targets), dtype=torch.bool), samples)
    assert batch.head_logprobs is None
    assert batch.draw_sampler_logprobs is None


@pytest.mark.parametrize("name", ["sc", "tis_sc", "tis", "is"])
def test_on_policy_the_trainer_takes_the_step_of_reinforce(name):
    plain, _ = update("reinforce", lambda model: on_policy_samples(model, [1.0, -0.5]))
    other, _ = update(name, lambda model: on_policy_samples(model, [1.0, -0.5], head=6))
    torch.testing.assert_close(other, plain, atol=2e-6, rtol=0)


def test_draws_that_are_the_sampled_token_cancel_it():
    """e_y - mean of one-hots is zero where every draw is y."""

    def samples(model):
        [sample] = on_policy_samples(model, [1.0])
        own = Candidates(
            np.asarray(sample.completion_ids)[:, None], np.asarray(sample.sampler_logprobs, dtype=np.float32)[:, None]
        )
        return [dataclasses.replace(sample, draws=own)]

    _, metrics = update("sc_sampled", samples)
    assert metrics["trained_tokens"] > 0
    assert metrics["grad_norm"] == pytest.approx(0.0, abs=1e-6)


def test_a_loss_is_sampled_with_what_it_needs_and_no_more():
    settings = RLSettings(head_size=16, draws=4)
    assert needed_recording(build_loss("reinforce"), settings).head == 0
    assert needed_recording(build_loss("sc"), settings).head == 16
    assert needed_recording(build_loss("sc"), settings).draws == 0
    assert needed_recording(build_loss("tis_sc_sampled"), settings).draws == 4
    measured = settings.model_copy(update={"drift_positions": 2})
    assert needed_recording(build_loss("reinforce"), measured).head == 16


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_every_loss_trains_and_on_policy_drifts_nowhere(name):
    def samples(model):
        return on_policy_samples(model, [1.0, -0.5, 0.25], head=8, draws=4)

    _, metrics = update(name, samples, drift_positions=3, head_size=8)
    assert metrics["grad_norm"] > 0
    assert metrics["drift"] == pytest.approx(0.0, abs=1e-4)
    assert metrics["total_variation"] == pytest.approx(0.0, abs=1e-5)


def test_drift_is_only_logged_where_it_is_measured():
    _, metrics = update("sc", lambda model: on_policy_samples(model, [1.0], head=8))
    assert "drift" not in metrics
