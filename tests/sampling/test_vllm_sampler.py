"""The real vLLM as a sampler: what it returns, and that it tells the trainer's log-probs after weight updates."""

import pytest
import torch

from stepcredit.countdown.puzzle import Puzzle
from stepcredit.modeling.logprobs import packed_logits, token_logprobs
from stepcredit.modeling.model import build_model, load_model, save_model
from stepcredit.modeling.tokenizer import TextCodec, build_tokenizer
from stepcredit.sampling.groups import sample_groups
from stepcredit.sampling.vllm_engine import VLLMSampler
from stepcredit.settings.model import ModelSettings
from stepcredit.settings.sampler import SamplerSettings

SMALL = ModelSettings(
    hidden_size=32, layers=2, intermediate_size=64, attention_heads=2, key_value_heads=1, head_dim=32, max_positions=128
)
CODEC = TextCodec(build_tokenizer(30))
PROMPTS = [CODEC.encode_prompt(f"Numbers: {n} 5 2\nTarget: 16\n") for n in range(1, 9)]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    directory = tmp_path_factory.mktemp("model") / "hf"
    save_model(build_model(SMALL, CODEC, seed=0), CODEC, directory)
    return directory


@pytest.fixture(scope="module")
def sampler(checkpoint):
    settings = SamplerSettings(max_model_len=128, max_concurrent=16, kv_cache_mib=16)
    return VLLMSampler(checkpoint, settings, eos_id=CODEC.eos_id)


def generate(sampler, seeds=range(8), temperature=1.0, prompts=PROMPTS, max_new_tokens=40):
    return sampler.generate(prompts, seeds=list(seeds), temperature=temperature, max_new_tokens=max_new_tokens)


def worst_difference(model, completions, temperature=1.0):
    with torch.no_grad():
        pairs = [(prompt, completion.token_ids) for prompt, completion in zip(PROMPTS, completions, strict=True)]
        logits, tokens = packed_logits(model, pairs)
        ours = token_logprobs(logits / temperature, tokens)
    theirs = torch.tensor([value for completion in completions for value in completion.logprobs])
    return (ours - theirs).abs().max().item()


@pytest.mark.parametrize("temperature", [0.6, 1.0])
def test_sampled_logprobs_are_the_trainers_at_the_same_temperature(sampler, checkpoint, temperature):
    model = load_model(checkpoint)
    sampler.push_weights(model)
    assert worst_difference(model, generate(sampler, temperature=temperature), temperature) < 1e-4


def test_after_each_of_several_pushes_the_new_weights_speak(sampler, checkpoint):
    """Neither a tied head nor a cached prefix may keep old weights."""
    model = load_model(checkpoint)
    for update in range(4):
        torch.manual_seed(update)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.05)
        before = generate(sampler)
        sampler.push_weights(model)
        after = generate(sampler)
        assert worst_difference(model, after) < 1e-4
        assert worst_difference(model, before) > 1e-2  # the test can tell old weights from new


def test_a_seed_decides_a_completion_whatever_its_company_and_order(sampler):
    together = generate(sampler)
    backwards = generate(sampler, seeds=range(7, -1, -1), prompts=PROMPTS[::-1])
    alone = generate(sampler, seeds=[3], prompts=[PROMPTS[3]])
    assert [c.token_ids for c in together] == [c.token_ids for c in backwards[::-1]]
    assert alone[0].token_ids == together[3].token_ids
    assert generate(sampler, seeds=range(8, 16)) != together


def test_a_completion_at_the_cap_is_not_finished_and_submits_nothing(sampler):
    groups = sample_groups(sampler, CODEC, [Puzzle((3, 5, 2), 16)], [[0, 1]], temperature=1.0, max_new_tokens=3)
    for rollout in groups[0].rollouts:
        assert len(rollout) == 3
        assert not rollout.completion.finished
        assert rollout.verdict.reason == "truncated"
        assert rollout.reward == 0.0


def test_a_finished_completion_ends_with_the_end_token(sampler):
    finished = [c for c in generate(sampler, max_new_tokens=100) if c.finished]
    assert finished
    assert all(c.token_ids[-1] == CODEC.eos_id and len(c.logprobs) == len(c.token_ids) for c in finished)
