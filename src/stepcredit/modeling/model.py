"""Models: a small Qwen3 from random weights, or any causal model from a directory; loading and saving."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel, Qwen3Config, Qwen3ForCausalLM

from stepcredit.modeling.attention import use_layouts
from stepcredit.modeling.tokenizer import TextCodec
from stepcredit.provenance.files import atomic_directory
from stepcredit.settings.model import ModelSettings


def build_model(settings: ModelSettings, codec: TextCodec, seed: int) -> PreTrainedModel:
    """A Qwen3 with random weights for the tokens of `codec`; see `random_model`."""
    tokenizer = codec.tokenizer
    special = {
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    return random_model(settings, len(tokenizer), special, seed)


def random_model(
    settings: ModelSettings, vocabulary: int, special: Mapping[str, int | None], seed: int
) -> PreTrainedModel:
    """A Qwen3 with random weights, float32, embeddings tied; the same bytes for the same seed.

    Args:
        vocabulary: number of tokens.
        special: ids of the special tokens, by their names in the model's configuration.
    """
    config = Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=settings.hidden_size,
        intermediate_size=settings.intermediate_size,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.attention_heads,
        num_key_value_heads=settings.key_value_heads,
        head_dim=settings.head_dim,
        max_position_embeddings=settings.max_positions,
        tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
        **special,
    )
    torch.manual_seed(seed)
    return use_layouts(Qwen3ForCausalLM(config).float())


def load_model(directory: Path | str, device: str = "cpu") -> PreTrainedModel:
    """A causal model from a Hugging Face directory, float32, on `device`; never from pickled weights.

    Raises:
        OSError: it holds no safetensors.
    """
    model = AutoModelForCausalLM.from_pretrained(
        directory, dtype=torch.float32, local_files_only=True, use_safetensors=True
    )
    return use_layouts(model.to(device))


def save_model(model: PreTrainedModel, codec: TextCodec, directory: Path) -> None:
    """Model and tokenizer in the Hugging Face layout, all or nothing."""
    with atomic_directory(directory) as temporary:
        model.save_pretrained(temporary)
        codec.tokenizer.save_pretrained(temporary)
