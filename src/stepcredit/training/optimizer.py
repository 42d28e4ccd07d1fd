"""AdamW and learning-rate schedules."""

from __future__ import annotations

import torch
from transformers import PreTrainedModel

from stepcredit.settings.model import OptimizerSettings


def build_optimizer(model: PreTrainedModel, settings: OptimizerSettings, learning_rate: float) -> torch.optim.AdamW:
    """AdamW; matrices decay, vectors (norms) do not."""
    matrices = [parameter for parameter in model.parameters() if parameter.ndim >= 2]
    vectors = [parameter for parameter in model.parameters() if parameter.ndim < 2]
    groups = [
        {"params": matrices, "weight_decay": settings.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=learning_rate, betas=(settings.beta1, settings.beta2))


def set_learning_rate(optimizer: torch.optim.Optimizer, learning_rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = learning_rate


def linear_schedule(step: int, *, peak: float, floor: float, warmup: int, decay: int, total: int) -> float:
    """Learning rate of `step` (from 1): linear warm-up, constant, linear decay to `floor` over the last `decay` steps.

    The schedule named "linear" of prime-rl, as in CPAS, "SFT stage".
    """
    if step <= warmup:
        return peak * step / warmup
    into_decay = step - (total - decay)
    if decay and into_decay > 0:
        return peak + (floor - peak) * into_decay / decay
    return peak


def warmup_schedule(step: int, *, peak: float, warmup: int) -> float:
    """Learning rate of `step` (from 1): linear warm-up, then constant."""
    return peak * min(1.0, step / warmup) if warmup else peak
