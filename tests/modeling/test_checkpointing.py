"""Gradient checkpointing: the same gradients, fewer tensors kept for them, nothing left switched on."""

import contextlib

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from stepcredit.modeling.attention import use_layouts
from stepcredit.modeling.checkpointing import gradient_checkpointing
from stepcredit.modeling.logprobs import packed_logits, token_logprobs
from stepcredit.modeling.model import random_model
from stepcredit.settings.model import ModelSettings

SHAPE = ModelSettings(
    hidden_size=32, layers=4, intermediate_size=64, attention_heads=2, key_value_heads=1, head_dim=32, max_positions=128
)
PAIRS = [([1, 2, 3], [4, 5, 6, 7]), ([8, 9], [10] * 40)]


def qwen():
    return random_model(SHAPE, 50, {"eos_token_id": 0}, seed=0)


def llama():
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=50, hidden_size=32, intermediate_size=64, num_hidden_layers=4, num_attention_heads=2,
        num_key_value_heads=1, tie_word_embeddings=True,
    )  # fmt: skip
    return use_layouts(LlamaForCausalLM(config).float())


def backward(model, enabled):
    """Gradients, and how many numbers the forward pass kept for them."""
    kept = 0

    def keep(tensor):
        nonlocal kept
        kept += tensor.numel()
        return tensor

    model.zero_grad()
    with gradient_checkpointing(model, enabled):
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            loss = -token_logprobs(*packed_logits(model, PAIRS)).mean()
            forward = kept
        loss.backward()
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters()}, forward


@pytest.mark.parametrize("build", [qwen, llama])
def test_gradients_are_the_same_and_far_less_is_kept(build):
    model = build().eval()
    plain, kept = backward(model, False)
    checkpointed, less = backward(model, True)
    assert all(gradient.abs().max() > 0 for gradient in plain.values())
    for name, gradient in plain.items():
        torch.testing.assert_close(checkpointed[name], gradient, rtol=0, atol=0, msg=name)
    assert less < kept / 3


def test_it_is_off_again_after_an_error():
    model = qwen().eval()
    with contextlib.suppress(RuntimeError), gradient_checkpointing(model, True):
        assert model.is_gradient_checkpointing
        raise RuntimeError
    assert not model.is_gradient_checkpointing
    assert not model.training
