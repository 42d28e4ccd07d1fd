"""What the real vLLM notes at each position: its top-k and further draws."""

import numpy as np
import pytest
import torch

from stepcredit.modeling.logprobs import packed_logits
from stepcredit.modeling.model import build_model, save_model
from stepcredit.modeling.tokenizer import TextCodec, build_tokenizer
from stepcredit.sampling.sampler import Recording
from stepcredit.sampling.vllm_engine import VLLMSampler
from stepcredit.settings.model import ModelSettings
from stepcredit.settings.sampler import SamplerSettings

SMALL = ModelSettings(
    hidden_size=32, layers=2, intermediate_size=64, attention_heads=2, key_value_heads=1, head_dim=32, max_positions=64
)
CODEC = TextCodec(build_tokenizer(20))
TEMPERATURE = 0.3
"""Low, so that random weights give a distribution that is worth drawing from."""
PROMPTS = [[3 + index, 5, 7] for index in range(6)]


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    directory = tmp_path_factory.mktemp("model") / "model"
    save_model(build_model(SMALL, CODEC, seed=0), CODEC, directory)
    settings = SamplerSettings(max_model_len=64, max_concurrent=4, kv_cache_mib=16)
    return VLLMSampler(directory, settings, eos_id=CODEC.eos_id)


def generate(engine, recording, prompts=PROMPTS):
    seeds = [100 + prompt[0] for prompt in prompts]
    return engine.generate(prompts, seeds=seeds, temperature=TEMPERATURE, max_new_tokens=20, recording=recording)


def exact(prompt, completion):
    """[tokens, V] log-probabilities of a plain forward pass."""
    with torch.no_grad():
        logits, _ = packed_logits(build_model(SMALL, CODEC, seed=0), [(prompt, completion.token_ids)])
    return (logits / TEMPERATURE).log_softmax(-1)


def test_recording_does_not_change_what_is_sampled(engine):
    plain = generate(engine, Recording())
    recorded = generate(engine, Recording(head=5, draws=3))
    assert [c.token_ids for c in plain] == [c.token_ids for c in recorded]
    assert [c.logprobs for c in plain] == [c.logprobs for c in recorded]
    assert all(c.head is None and c.draws is None for c in plain)
    bare = generate(engine, Recording(logprobs=False))
    assert [c.token_ids for c in plain] == [c.token_ids for c in bare]
    assert all(c.logprobs == () for c in bare)


def test_the_head_is_the_k_most_likely_tokens_each_once(engine):
    for prompt, completion in zip(PROMPTS, generate(engine, Recording(head=5)), strict=True):
        top = exact(prompt, completion).topk(5)
        assert completion.head.token_ids.shape == (len(completion.token_ids), 5)
        assert all(len(set(row)) == 5 for row in completion.head.token_ids.tolist())
        np.testing.assert_allclose(completion.head.logprobs, top.values.numpy(), atol=2e-5)
        assert sorted(completion.head.token_ids[0]) == sorted(top.indices[0].tolist())


def test_a_head_larger_than_the_vocabulary_is_the_whole_distribution(engine):
    completion = generate(engine, Recording(head=10_000))[0]
    assert completion.head.token_ids.shape[1] == len(CODEC.tokenizer)
    np.testing.assert_allclose(np.exp(completion.head.logprobs).sum(axis=1), 1, atol=1e-5)


def test_draws_come_with_their_log_probabilities_and_follow_the_distribution(engine):
    expected, found = np.zeros(len(CODEC.tokenizer)), np.zeros(len(CODEC.tokenizer))
    for prompt, completion in zip(PROMPTS, generate(engine, Recording(draws=400)), strict=True):
        logprobs = exact(prompt, completion)
        drawn = torch.from_numpy(completion.draws.token_ids)
        assert drawn.shape == (len(completion.token_ids), 400)
        np.testing.assert_allclose(completion.draws.logprobs, logprobs.gather(1, drawn).numpy(), atol=2e-5)
        expected += logprobs.exp().sum(0).numpy()
        found += np.bincount(drawn.flatten(), minlength=len(expected)) / 400
    positions = expected.sum()
    deviation = np.sqrt(expected / positions / 400 / positions)
    assert (np.abs(found - expected) / positions <= 5 * deviation + 1e-4).all()


def test_draws_differ_by_position_and_seed_and_not_by_companions(engine):
    together = generate(engine, Recording(draws=8))
    alone = generate(engine, Recording(draws=8), PROMPTS[3:4])[0]
    assert np.array_equal(alone.draws.token_ids, together[3].draws.token_ids)
    assert not np.array_equal(together[0].draws.token_ids[0], together[0].draws.token_ids[1])
    assert not np.array_equal(together[0].draws.token_ids[0], together[1].draws.token_ids[0])
