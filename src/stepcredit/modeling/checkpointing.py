"""Gradient checkpointing: activations of one layer at a time in memory, for about a third more computation."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from transformers import PreTrainedModel


@contextlib.contextmanager
def gradient_checkpointing(model: PreTrainedModel, enabled: bool) -> Iterator[None]:
    """Inside, if `enabled`, each layer keeps its input alone and is computed anew in the backward pass.

    Only inside: a layer that is checkpointed drops the keys and values that a tree scorer hands it.
    """
    if not enabled:
        yield
        return
    training = model.training
    model.train()
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    try:
        yield
    finally:
        model.gradient_checkpointing_disable()
        model.train(training)
