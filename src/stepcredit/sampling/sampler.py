"""The protocol of samplers: tokens out, weights in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from transformers import PreTrainedModel

from stepcredit.rollouts import Completion


class Sampler(Protocol):
    """Samples completions, and takes new weights between calls."""

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        seeds: Sequence[int],
        temperature: float,
        max_new_tokens: int,
    ) -> list[Completion]:
        """One completion a prompt, in order; the same prompt, seed and weights give the same completion.

        Args:
            prompts: token ids of each prompt.
            seeds: one random seed a prompt.
            temperature: of the sampling; the returned log-probabilities are those of the tempered distribution.
            max_new_tokens: the token cap; a completion that reaches it is not finished.
        """
        ...

    def push_weights(self, model: PreTrainedModel) -> None:
        """Sample from `model`'s weights from now on; nothing computed under the old weights is used again."""
        ...
