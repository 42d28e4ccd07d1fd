"""The scorer protocol: the log-likelihood of each answer of a bank after each of several prefixes.

A scorer returns `l(a | x, s_1:n) = log p_phi(a | x, s_1:n)` (CPAS, "How to measure distance?"), in nats: the
sum over the tokens of `a`, placed after the template that opens the solution. How it computes them is its own
business; what it spent is in its `ScoringCost`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from stepcredit.scoring.trie import Trie

Tokens = tuple[int, ...]
LogLikelihoods = npt.NDArray[np.float64]


class Scoring(NamedTuple):
    """One answer after one prefix: the sum of the log-probabilities of `tokens[start:]` is asked for."""

    tokens: Tokens
    start: int


@dataclass(frozen=True)
class ScoringRequest:
    """Every answer of a bank after each of several prefixes of one rollout.

    The scored sequences are `trunk[:boundary] + template + answer`; only the answer's tokens are scored.

    Attributes:
        trunk: the rollout's prompt and its reasoning.
        boundaries: lengths of the prefixes of `trunk`; any order, repeats allowed.
        template: the tokens that open the solution after a prefix.
        answers: the scored tokens of each answer, the closing tag included; repeats allowed.

    Raises:
        ValueError: a boundary outside of the trunk, an empty template, or an empty answer.
    """

    trunk: Tokens
    boundaries: Tokens
    template: Tokens
    answers: tuple[Tokens, ...]

    def __post_init__(self) -> None:
        if not all(0 <= boundary <= len(self.trunk) for boundary in self.boundaries):
            raise ValueError(f"boundaries {self.boundaries} must lie within 0..{len(self.trunk)}, the trunk's length")
        if not self.template:
            raise ValueError("the template is empty: the first token of an answer needs a token before it")
        if not all(self.answers):
            raise ValueError("an answer without tokens cannot be scored")

    def scorings(self) -> Iterator[Scoring]:
        """The logical scorings, boundary by boundary."""
        for boundary in self.boundaries:
            prefix = self.trunk[:boundary] + self.template
            for answer in self.answers:
                yield Scoring(prefix + answer, len(prefix))

    def __len__(self) -> int:
        """Number of logical scorings."""
        return len(self.boundaries) * len(self.answers)


@dataclass(frozen=True)
class ScoringCost:
    """What a batch of scorings asked for and what it cost.

    Attributes:
        scorings: logical scorings, (boundary, answer) pairs.
        scorings_unique: those that differ in their tokens.
        tokens_computed: tokens that went through the scorer's model.
        tokens_cached: tokens taken from a cache instead.
        requests: requests sent to a server.
        bytes: bytes received from a server.
    """

    scorings: int = 0
    scorings_unique: int = 0
    tokens_computed: int = 0
    tokens_cached: int = 0
    requests: int = 0
    bytes: int = 0


class Scorer(Protocol):
    """Anything that scores answers: in process, or a client of a server."""

    def score(self, requests: Sequence[ScoringRequest]) -> tuple[list[LogLikelihoods], ScoringCost]:
        """Of each request the log-likelihoods in nats, float64 [boundaries, answers]; and the cost of all."""
        ...


def deduplicate(
    requests: Sequence[ScoringRequest],
) -> tuple[list[Scoring], list[npt.NDArray[np.int64]]]:
    """The scorings that differ in their tokens, in order of first appearance.

    Returns:
        the unique scorings; and for each request the index of each of its scorings in them, [boundaries,
        answers].
    """
    index: dict[Scoring, int] = {}
    positions = [
        np.array([index.setdefault(scoring, len(index)) for scoring in request.scorings()], dtype=np.int64).reshape(
            len(request.boundaries), len(request.answers)
        )
        for request in requests
    ]
    return list(index), positions


def minimum_tokens(requests: Sequence[ScoringRequest]) -> int:
    """Tokens that any scorer has to push through its model: the nodes of the trie of all scored sequences.

    Sequences that begin alike share the tokens of their common beginning; the last token of each is never an
    input.
    """
    trie = Trie()
    for scoring in deduplicate(requests)[0]:
        trie.insert(scoring.tokens[:-1])
    return len(trie)


def minimum_by_blocks(requests: Sequence[ScoringRequest], block: int) -> int:
    """Tokens that a prefix cache of whole blocks has to compute, from empty: the least that `cached` can reach.

    A scoring takes from it whole blocks of `block` tokens that end before its span's first prediction, where a
    scoring before it has computed them.
    """
    trie = Trie()
    filled: set[int] = set()
    computed = 0
    for scoring in deduplicate(requests)[0]:
        path = trie.insert(scoring.tokens[:-1])
        blocks = path[block - 1 :: block]
        usable = blocks[: (scoring.start - 1) // block]
        hits = sum(1 for _ in itertools.takewhile(filled.__contains__, usable))
        computed += len(path) - block * hits
        filled.update(blocks)
    return computed
