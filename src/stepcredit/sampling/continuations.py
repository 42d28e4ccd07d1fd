"""Continuations of a rollout cut short: how often the sampler gets from there to a right answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from stepcredit.countdown.puzzle import Puzzle
from stepcredit.countdown.verifier import grade
from stepcredit.rollouts import Completion
from stepcredit.sampling.sampler import Sampler
from stepcredit.seeds import derive_seed

Tokens = tuple[int, ...]


class Decoder(Protocol):
    """The part of a tokenizer that grading needs."""

    def decode(self, ids: list[int] | tuple[int, ...]) -> str:
        """Text of tokens, without special tokens."""
        ...


@dataclass(frozen=True)
class Prefix:
    """The beginning of a completion of a puzzle's prompt."""

    puzzle: Puzzle
    prompt_ids: Tokens
    completion_ids: Tokens


@dataclass(frozen=True)
class Outcome:
    """What became of the continuations of a prefix.

    Attributes:
        successes, finished: how many ended in a right answer, and how many ended before the cap.
        tokens: sampled for all of them.
    """

    successes: int
    finished: int
    tokens: int


@dataclass(frozen=True)
class Continuations:
    """Samples continuations of prefixes and grades the whole completions.

    Attributes:
        sampler, decoder: of tokens and their text.
        samples: continuations of a prefix.
        temperature: of the sampling.
        max_new_tokens: the cap of a whole completion, prefix and continuation together.
        seed: the seed of a continuation depends on this, its prefix and its number alone.
    """

    sampler: Sampler
    decoder: Decoder
    samples: int
    temperature: float
    max_new_tokens: int
    seed: int

    def sample(self, prefixes: Sequence[Prefix]) -> list[Outcome]:
        """The outcome of each prefix, in order."""
        if not prefixes:
            return []
        starts = [prefix.prompt_ids + prefix.completion_ids for prefix in prefixes]
        completions = self.sampler.generate(
            [start for start in starts for _ in range(self.samples)],
            seeds=[
                derive_seed(self.seed, "continuation", *start, sample)
                for start in starts
                for sample in range(self.samples)
            ],
            temperature=self.temperature,
            max_new_tokens=self.max_new_tokens,
        )
        return [
            self._outcome(prefix, completions[index * self.samples : (index + 1) * self.samples])
            for index, prefix in enumerate(prefixes)
        ]

    def _outcome(self, prefix: Prefix, continuations: Sequence[Completion]) -> Outcome:
        room = self.max_new_tokens - len(prefix.completion_ids)
        ended = [c.token_ids for c in continuations if c.finished and len(c.token_ids) <= room]
        rewards = [grade(self.decoder.decode(prefix.completion_ids + ids), prefix.puzzle).reward for ids in ended]
        return Outcome(
            successes=sum(reward > 0 for reward in rewards),
            finished=len(ended),
            tokens=sum(min(len(c.token_ids), room) for c in continuations),
        )
