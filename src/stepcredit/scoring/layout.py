"""The attention layout of trees: blocks of rows that attend to listed rows of one flat, unpadded sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F


@dataclass(frozen=True)
class Block:
    """`branches` runs of `rows` rows each, which follow each other in the flat sequence.

    Attributes:
        keys: [branches, keys] int64: the rows of the flat sequence that a run may attend to.
        mask: [branches, 1, rows, keys], added to the scores: 0 where a row attends, -inf where it does not.
    """

    keys: Tensor
    mask: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        """(branches, rows)."""
        return self.mask.shape[0], self.mask.shape[2]


class TreeLayout:
    """Blocks that cover the rows of a flat sequence in order (`stepcredit.modeling.attention.Layout`).

    Attributes:
        blocks: of the rows from `first` on.
        first: rows before it attend to nothing, their output is 0.
    """

    def __init__(self, blocks: Sequence[Block], first: int = 0) -> None:
        self.blocks = list(blocks)
        self.first = first

    def attend(self, query: Tensor, key: Tensor, value: Tensor, scaling: float) -> Tensor:
        """See `Layout.attend`; a block reads its keys by row number, so shared rows are computed once."""
        query, key, value = (tensor[0].transpose(0, 1) for tensor in (query, key, value))  # rows first
        key, value = key.contiguous(), value.contiguous()
        grouped = query.shape[1] != key.shape[1]
        start = self.first
        outputs = [query.new_zeros((start, *query.shape[1:]))]
        for block in self.blocks:
            branches, rows = block.shape
            end = start + branches * rows
            attended = F.scaled_dot_product_attention(
                query[start:end].view(branches, rows, *query.shape[1:]).transpose(1, 2),
                _rows(key, block.keys).transpose(1, 2),
                _rows(value, block.keys).transpose(1, 2),
                attn_mask=block.mask,
                scale=scaling,
                enable_gqa=grouped,
            )
            outputs.append(attended.transpose(1, 2).flatten(0, 1))
            start = end
        return torch.cat(outputs)[None]


def _rows(tensor: Tensor, rows: Tensor) -> Tensor:
    """tensor[rows], four times as fast: [branches, keys, heads, head_dim] of [rows, heads, head_dim]."""
    return tensor.index_select(0, rows.flatten()).view(*rows.shape, *tensor.shape[1:])
