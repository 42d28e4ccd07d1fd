"""The protocol of samplers: tokens out, weights in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from transformers import PreTrainedModel

from stepcredit.rollouts import Completion


@dataclass(frozen=True)
class Recording:
    """What a sampler notes at each position.

    Attributes:
        logprobs: the sampled token's log-probability; needed by `head`.
        head: the most likely tokens; 0: none. At most the vocabulary.
        draws: further independent draws; 0: none.
    """

    logprobs: bool = True
    head: int = 0
    draws: int = 0


SAMPLED = Recording()
"""The log-probabilities of the sampled tokens."""
NOTHING = Recording(logprobs=False)
"""Tokens alone: a tenth faster on a CPU."""


class Sampler(Protocol):
    """Samples completions, and takes new weights between calls."""

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        seeds: Sequence[int],
        temperature: float,
        max_new_tokens: int,
        recording: Recording = SAMPLED,
    ) -> list[Completion]:
        """One completion a prompt, in order; the same prompt, seed and weights give the same completion.

        Args:
            prompts: token ids of each prompt.
            seeds: one random seed a prompt.
            temperature: of the sampling; the returned log-probabilities are those of the tempered distribution.
            max_new_tokens: the token cap; a completion that reaches it is not finished.
            recording: what to note at each position; it does not change what is sampled.
        """
        ...

    def push_weights(self, model: PreTrainedModel) -> None:
        """Sample from `model`'s weights from now on; nothing computed under the old weights is used again."""
        ...
