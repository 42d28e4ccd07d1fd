"""Attention over a layout: one flat sequence of tokens that holds many sequences, or trees, without padding.

`transformers` lets a model run with an attention function of our own. Ours asks a `Layout`, passed to the model's
forward as `layout=`, how the rows of the flat sequence attend to each other, so that any Hugging Face causal model
trains on packed sequences and scores trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import AttentionInterface, PreTrainedModel

IMPLEMENTATION = "stepcredit_layout"


class Layout(Protocol):
    """How the rows of a flat sequence attend to each other."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor, scaling: float) -> Tensor:
        """Attention of every row.

        Args:
            query: [1, heads, rows, head_dim]; key, value: [1, key_value_heads, rows, head_dim].
            scaling: factor of the dot products.

        Returns:
            [1, rows, heads, head_dim].
        """
        ...


class Packed:
    """Causal sequences one after the other, each seeing only itself."""

    def __init__(self, lengths: Sequence[int]) -> None:
        self.lengths = list(lengths)

    def position_ids(self) -> Tensor:
        """[1, rows] int64: each sequence counts from 0."""
        return torch.cat([torch.arange(length) for length in self.lengths])[None]

    def attend(self, query: Tensor, key: Tensor, value: Tensor, scaling: float) -> Tensor:
        grouped = query.shape[1] != key.shape[1]
        outputs = [
            F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scaling, enable_gqa=grouped)
            for q, k, v in zip(
                torch.split(query, self.lengths, dim=2),
                torch.split(key, self.lengths, dim=2),
                torch.split(value, self.lengths, dim=2),
                strict=True,
            )
        ]
        return torch.cat(outputs, dim=2).transpose(1, 2)


def _attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    *,
    layout: Layout,
    **_: Any,
) -> tuple[Tensor, None]:
    if attention_mask is not None:
        raise ValueError("a layout says who attends to whom: pass no attention_mask beside it")
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    return layout.attend(query, key, value, scale), None


AttentionInterface.register(IMPLEMENTATION, _attention)


def use_layouts(model: PreTrainedModel) -> PreTrainedModel:
    """Make the model's forward take `layout=`; returns the same model."""
    model.set_attn_implementation(IMPLEMENTATION)
    return model
