"""A part of a model that works row by row, kept to the rows that are read afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn
from transformers import PreTrainedModel


@contextmanager
def last_mlp_on(model: PreTrainedModel, rows: Tensor) -> Iterator[None]:
    """Inside the block, the MLP of the last layer computes `rows` [n] alone; the hidden states of others mean nothing.

    Most rows of a tree predict nothing that is scored: of them the last layer needs keys and values only. Does nothing
    to a model whose last layer has no plain MLP (one with `down_proj`).
    """
    layers = getattr(model.base_model, "layers", None)
    mlp: nn.Module | None = getattr(layers[-1], "mlp", None) if layers else None
    if mlp is None or not hasattr(mlp, "down_proj"):
        yield
        return
    forward = mlp.forward

    def on_rows(hidden: Tensor) -> Tensor:
        result = hidden.new_zeros(hidden.shape)
        result[:, rows] = forward(hidden[:, rows])
        return result

    mlp.forward = on_rows
    try:
        yield
    finally:
        del mlp.forward
