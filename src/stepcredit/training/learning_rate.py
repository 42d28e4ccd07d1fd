"""The choice of the learning rate: the best pass@1 on the validation puzzles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Choice(NamedTuple):
    learning_rate: float
    pass_at_1: float


def best_learning_rate(validation: Mapping[float, list[float]]) -> Choice:
    """The learning rate whose rollouts have the highest mean reward; of equals the smallest.

    Args:
        validation: the rewards of the validation rollouts after training at each learning rate. Every puzzle has
            the same number of samples, so their mean is pass@1.
    """
    means = {rate: sum(rewards) / len(rewards) for rate, rewards in validation.items()}
    rate = min(means, key=lambda rate: (-means[rate], rate))
    return Choice(rate, means[rate])
