"""A moving average of the policy's weights, to score with: between the frozen scorer and the moving one.

Source: CPAS, footnote 2 names it and leaves it untested.
"""

from __future__ import annotations

import torch
from transformers import PreTrainedModel


class MovingAverage:
    """Weights that follow a policy's: average <- decay * average + (1 - decay) * policy.

    Attributes:
        model: holds the average; it starts from the weights it is given.
    """

    def __init__(self, model: PreTrainedModel, policy: PreTrainedModel, decay: float) -> None:
        self.model = model
        self._policy = policy
        self._decay = decay

    @torch.no_grad()
    def update(self) -> None:
        """Take in the policy's weights as they are now; called once after each optimiser step."""
        for average, current in zip(self.model.parameters(), self._policy.parameters(), strict=True):
            average.lerp_(current.to(average.dtype), 1.0 - self._decay)
