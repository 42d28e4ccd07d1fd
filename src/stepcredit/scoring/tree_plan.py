"""What the tree scorer has to compute, without a model: who shares which prefix, in which chunks.

A plan holds one trie of all trunks of a batch. From the end of each distinct prefix hangs an answer tree:
template and answers of a bank, answers that begin alike sharing their beginning.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stepcredit.scoring.scorer import ScoringRequest, Tokens
from stepcredit.scoring.trie import ROOT, Trie

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class AnswerTree:
    """The trie of a template followed by each of several answers, without the last token of each.

    Attributes:
        tokens, depths: [nodes] of each node; the first token of the template has depth 0.
        ancestry: [nodes, nodes], see `Trie.ancestry`.
        nodes, targets: [scored tokens], answer by answer: the node whose successor is scored, and that
            successor.
        starts: [answers]: where each answer begins in `nodes` and `targets`.
    """

    tokens: Integers
    depths: Integers
    ancestry: npt.NDArray[np.bool_]
    nodes: Integers
    targets: Integers
    starts: Integers

    @classmethod
    def build(cls, template: Tokens, answers: Sequence[Tokens]) -> AnswerTree:
        trie = Trie()
        nodes: list[int] = []
        for answer in answers:
            nodes.extend(trie.insert(template + answer[:-1])[len(template) - 1 :])
        lengths = [len(answer) for answer in answers]
        return cls(
            tokens=np.array(trie.tokens, dtype=np.int64),
            depths=np.array(trie.depths, dtype=np.int64),
            ancestry=trie.ancestry(),
            nodes=np.array(nodes, dtype=np.int64),
            targets=np.array(list(itertools.chain.from_iterable(answers)), dtype=np.int64),
            starts=np.cumsum([0, *lengths[:-1]], dtype=np.int64),
        )

    def __len__(self) -> int:
        return len(self.tokens)


@dataclass(frozen=True)
class Branch:
    """An answer tree at a boundary; its answers are the unique scorings from number `first` on."""

    boundary: int
    tree: AnswerTree
    first: int


@dataclass(frozen=True)
class Job:
    """A trunk, as nodes of the plan's trie, up to its last branch, and the branches no job before it has."""

    path: list[int]
    branches: list[Branch]

    def __len__(self) -> int:
        """Tokens, the trunk's all counted as its own."""
        return len(self.path) + sum(len(branch.tree) for branch in self.branches)


class Plan:
    """Each distinct (prefix, template, answer) of a batch once, done by the first request that needs it.

    Attributes:
        trie: of all trunks.
        families: jobs of consecutive requests that share a bank, and so mostly a prompt.
        positions: for each request the unique scoring that each of its own is, [boundaries, answers].
    """

    def __init__(self, requests: Sequence[ScoringRequest]) -> None:
        self.trie = Trie()
        self._slots: dict[tuple[int, Tokens, Tokens], int] = {}
        self._trees: dict[tuple[Tokens, tuple[Tokens, ...]], AnswerTree] = {}
        self.families: list[list[Job]] = []
        self.positions: list[Integers] = []
        for _, family in itertools.groupby(requests, key=lambda request: (request.template, request.answers)):
            jobs = [self._add(request) for request in family]
            self.families.append([job for job in jobs if job.branches])

    @property
    def unique(self) -> int:
        """Number of unique scorings."""
        return len(self._slots)

    def chunks(self, tokens: int) -> Iterator[list[Job]]:
        """Jobs in order, `tokens` tokens at a time: jobs stay whole always, families where they fit."""
        chunk: list[Job] = []
        size = 0
        for family in self.families:
            whole = sum(map(len, family)) <= tokens
            for part in [family] if whole else [[job] for job in family]:
                weight = sum(map(len, part))
                if chunk and size + weight > tokens:
                    yield chunk
                    chunk, size = [], 0
                chunk = chunk + part
                size += weight
        if chunk:
            yield chunk

    def _add(self, request: ScoringRequest) -> Job:
        shape = len(request.boundaries), len(request.answers)
        if 0 in shape:
            self.positions.append(np.empty(shape, dtype=np.int64))
            return Job([], [])
        path = self.trie.insert(request.trunk[: max(request.boundaries)])
        nodes = {boundary: path[boundary - 1] if boundary else ROOT for boundary in request.boundaries}
        found = [self._branch(request, boundary, node) for boundary, node in nodes.items()]
        branches = [branch for branch in found if branch is not None]
        positions = [
            self._slots[nodes[boundary], request.template, answer]
            for boundary in request.boundaries
            for answer in request.answers
        ]
        self.positions.append(np.array(positions, dtype=np.int64).reshape(shape))
        return Job(path[: max((branch.boundary for branch in branches), default=0)], branches)

    def _branch(self, request: ScoringRequest, boundary: int, node: int) -> Branch | None:
        """The branch of the answers that nobody scored yet at this node; None if there are none."""
        template, first = request.template, len(self._slots)
        missing = tuple(a for a in dict.fromkeys(request.answers) if (node, template, a) not in self._slots)
        if not missing:
            return None
        for answer in missing:
            self._slots[node, template, answer] = len(self._slots)
        if (template, missing) not in self._trees:
            self._trees[template, missing] = AnswerTree.build(template, missing)
        return Branch(boundary, self._trees[template, missing], first)
