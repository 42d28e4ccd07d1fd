"""A sampler whose weight updates land in the middle of generation, as in asynchronous RL.

PARITY, "In-flight weight updates": the actor goes on with requests under way when new weights arrive. Here each
completion's first tokens come from the old weights; then the update lands, and the rest comes from the new ones.
Whether what was cached under the old weights is computed anew is the inner sampler's `reset_cache`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from transformers import PreTrainedModel

from stepcredit.rollouts import Completion
from stepcredit.sampling.sampler import SAMPLED, Recording, Sampler


class InFlightSampler:
    """A `Sampler` that holds an update back until each completion has `update_after` tokens."""

    def __init__(self, inner: Sampler, update_after: int) -> None:
        self._inner = inner
        self._update_after = update_after
        self._pending: PreTrainedModel | None = None
        self._generating = False

    def push_weights(self, model: PreTrainedModel) -> None:
        """Take note of the model; its weights at the time of the next `generate` are the ones that land there.

        Before the first `generate` nothing is in flight, and they land at once.
        """
        if self._generating:
            self._pending = model
        else:
            self._inner.push_weights(model)

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        seeds: Sequence[int],
        temperature: float,
        max_new_tokens: int,
        recording: Recording = SAMPLED,
    ) -> list[Completion]:
        """See `Sampler.generate`; log-probs are those of the weights that each token was sampled with.

        Raises:
            ValueError: anything is to be recorded beside the sampled tokens.
        """
        if recording.head or recording.draws:
            raise ValueError("updates in flight record neither heads nor draws: set sampler.update_after to null")
        self._generating = True
        if self._pending is not None and max_new_tokens <= self._update_after:
            self._land()
        if self._pending is None:
            return self._inner.generate(prompts, seeds=seeds, temperature=temperature, max_new_tokens=max_new_tokens)
        heads = [
            replace(head, lag=head.lag + 1)
            for head in self._inner.generate(
                prompts, seeds=seeds, temperature=temperature, max_new_tokens=self._update_after
            )
        ]
        self._land()
        unfinished = [index for index, head in enumerate(heads) if not head.finished]
        tails = self._inner.generate(
            [(*prompts[index], *heads[index].token_ids) for index in unfinished],
            seeds=[seeds[index] + 1 for index in unfinished],
            temperature=temperature,
            max_new_tokens=max_new_tokens - self._update_after,
        )
        whole = list(heads)
        for index, tail in zip(unfinished, tails, strict=True):
            whole[index] = _joined(heads[index], tail)
        return whole

    def _land(self) -> None:
        assert self._pending is not None
        self._inner.push_weights(self._pending)
        self._pending = None


def _joined(head: Completion, tail: Completion) -> Completion:
    early, late = len(head.token_ids), len(tail.token_ids)
    return Completion(
        token_ids=(*head.token_ids, *tail.token_ids),
        logprobs=(*head.logprobs, *tail.logprobs),
        finished=tail.finished,
        lag=(head.lag * early + tail.lag * late) / (early + late),
    )
