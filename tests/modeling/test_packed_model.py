import copy
import random

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from stepcredit.modeling.attention import Packed, use_layouts
from stepcredit.modeling.logprobs import entropy, packed_logits, token_logprobs
from stepcredit.modeling.model import build_model, load_model, save_model
from stepcredit.modeling.tokenizer import TextCodec, build_tokenizer
from stepcredit.settings.model import ModelSettings

CODEC = TextCodec(build_tokenizer(20))
SMALL = ModelSettings(
    hidden_size=32,
    layers=2,
    intermediate_size=64,
    attention_heads=4,
    key_value_heads=2,
    head_dim=32,
    max_positions=64,
)


def qwen():
    return build_model(SMALL, CODEC, seed=0)


def llama():
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(CODEC.tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
    )
    return use_layouts(LlamaForCausalLM(config).float())


def pairs(count=12, seed=0):
    rng = random.Random(seed)
    vocabulary = len(CODEC.tokenizer)

    def tokens(shortest, longest):
        return [rng.randrange(vocabulary) for _ in range(rng.randint(shortest, longest))]

    return [(tokens(1, 6), tokens(1, 20)) for _ in range(count)]


@pytest.mark.parametrize("build", [qwen, llama])
def test_packed_logprobs_are_those_of_each_sequence_alone(build):
    model = build()
    plain = copy.deepcopy(model)
    plain.set_attn_implementation("eager")
    logits, tokens = packed_logits(model, pairs())
    packed = token_logprobs(logits, tokens)
    alone = []
    for prompt, completion in pairs():
        output = plain(input_ids=torch.tensor([prompt + completion])).logits[0]
        logp = torch.log_softmax(output, -1)
        alone += [logp[len(prompt) - 1 + i, token] for i, token in enumerate(completion)]
    torch.testing.assert_close(packed, torch.stack(alone), atol=2e-5, rtol=0)


def test_packed_gradients_are_those_of_each_sequence_alone():
    model = qwen()
    plain = copy.deepcopy(model)
    plain.set_attn_implementation("eager")
    logits, tokens = packed_logits(model, pairs(4))
    token_logprobs(logits, tokens).sum().backward()
    for prompt, completion in pairs(4):
        output = plain(input_ids=torch.tensor([prompt + completion])).logits[0, len(prompt) - 1 : -1]
        token_logprobs(output, torch.tensor(completion)).sum().backward()
    for (name, ours), theirs in zip(model.named_parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, atol=2e-4, rtol=1e-3, msg=name)


def test_positions_start_anew_in_each_packed_sequence():
    assert Packed([3, 2]).position_ids().tolist() == [[0, 1, 2, 0, 1]]


def test_a_mask_beside_a_layout_is_refused():
    model = qwen()
    mask = {"full_attention": torch.ones(1, 1, 3, 3)}
    with pytest.raises(ValueError, match="attention_mask"):
        model.base_model(input_ids=torch.tensor([[1, 2, 3]]), attention_mask=mask, layout=Packed([3]))


def test_entropy_of_a_uniform_and_of_a_certain_row():
    logits = torch.tensor([[0.0, 0.0, 0.0, 0.0], [100.0, 0.0, 0.0, 0.0]])
    torch.testing.assert_close(entropy(logits), torch.tensor([1.3862944, 0.0]))


def test_the_same_seed_builds_the_same_weights_and_another_seed_others():
    first, again, other = qwen(), qwen(), build_model(SMALL, CODEC, seed=1)
    weights = [model.get_input_embeddings().weight for model in (first, again, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_a_saved_model_loads_with_the_same_logprobs_and_is_plain_transformers(tmp_path):
    model = qwen()
    save_model(model, CODEC, tmp_path / "model")
    logits, _ = packed_logits(model, pairs(2))
    again, _ = packed_logits(load_model(tmp_path / "model"), pairs(2))
    assert torch.equal(logits, again)
    elsewhere = AutoModelForCausalLM.from_pretrained(tmp_path / "model", dtype=torch.float32)
    assert elsewhere.config._attn_implementation != "stepcredit_layout"
