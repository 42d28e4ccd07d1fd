"""Continuations of a rollout cut short: how often the sampler gets from there to a right answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from stepcredit.countdown.puzzle import Puzzle
from stepcredit.countdown.verifier import grade
from stepcredit.rollouts import Completion
from stepcredit.sampling.sampler import NOTHING, Sampler
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
        """The outcome of each prefix, in order; a prefix that fills the cap has no continuations."""
        short = [prefix for prefix in prefixes if len(prefix.completion_ids) < self.max_new_tokens]
        if not short:
            return [Outcome(0, 0, 0) for _ in prefixes]
        starts = [prefix.prompt_ids + prefix.completion_ids for prefix in short for _ in range(self.samples)]
        completions = iter(
            self.sampler.generate(
                starts,
                seeds=[
                    derive_seed(self.seed, "continuation", *start, index % self.samples)
                    for index, start in enumerate(starts)
                ],
                temperature=self.temperature,
                max_new_tokens=self.max_new_tokens,
                recording=NOTHING,
            )
        )
        outcomes = (self._outcome(prefix, [next(completions) for _ in range(self.samples)]) for prefix in short)
        return [
            next(outcomes) if len(prefix.completion_ids) < self.max_new_tokens else Outcome(0, 0, 0)
            for prefix in prefixes
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
