"""A forward pass spared what nobody reads: most rows of a tree predict nothing that is scored.

The parts of a model that work row by row take no more rows at once than a cache holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from stepcredit.modeling.attention import Layout

ROWS_AT_ONCE = 512
"""Rows of an MLP computed together on a CPU: the activations of a small model then stay in a core's cache."""

RowWise = Callable[[Tensor], Tensor]


@contextmanager
def row_wise(model: PreTrainedModel, rows: Tensor, last_layout: Layout) -> Iterator[None]:
    """Inside the block, the last layer computes for `rows` [n] alone, and MLPs take `ROWS_AT_ONCE` rows at a time.

    Of the other rows the last layer needs keys and values only: its attention goes by `last_layout`, and the hidden
    states of rows outside `rows` mean nothing. A part whose inside is not known (an MLP without `down_proj`, an
    attention that is no `self_attn`) is left as it is.
    """
    layers: list[Any] = list(getattr(model.base_model, "layers", []))
    with ExitStack() as replaced:
        for layer in layers:
            last = layer is layers[-1]
            if hasattr(layer, "mlp") and hasattr(layer.mlp, "down_proj"):
                forward = partial(_in_parts, layer.mlp.forward) if rows.device.type == "cpu" else layer.mlp.forward
                replaced.enter_context(_forward(layer.mlp, partial(_on_rows, forward, rows) if last else forward))
            if last and hasattr(layer, "self_attn"):
                replaced.enter_context(
                    _forward(layer.self_attn, partial(_by_layout, layer.self_attn.forward, last_layout))
                )
        yield


@contextmanager
def _forward(module: nn.Module, forward: Callable[..., Any]) -> Iterator[None]:
    module.forward = forward
    try:
        yield
    finally:
        del module.forward


def _in_parts(forward: RowWise, hidden: Tensor) -> Tensor:
    return torch.cat([forward(part) for part in torch.split(hidden, ROWS_AT_ONCE, dim=1)], dim=1)


def _on_rows(forward: RowWise, rows: Tensor, hidden: Tensor) -> Tensor:
    result = hidden.new_zeros(hidden.shape)
    result[:, rows] = forward(hidden[:, rows])
    return result


def _by_layout(forward: Callable[..., Any], last_layout: Layout, *arguments: Any, **named: Any) -> Any:
    return forward(*arguments, **{**named, "layout": last_layout})
