"""Tries of token sequences: sequences that begin alike share the nodes of their common beginning."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

ROOT = -1


class Trie:
    """A growing trie. A node is an integer in order of creation, so that a parent precedes its children.

    Attributes:
        tokens, parents, depths: of each node; the root is not a node, its children have depth 0.
    """

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.parents: list[int] = []
        self.depths: list[int] = []
        self._children: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self.tokens)

    def insert(self, sequence: Sequence[int]) -> list[int]:
        """The nodes of `sequence` from the root on, in order; new ones are made where it leaves the trie."""
        node = ROOT
        path = []
        for token in sequence:
            child = self._children.setdefault((node, token), len(self.tokens))
            if child == len(self.tokens):
                self.tokens.append(token)
                self.parents.append(node)
                self.depths.append(0 if node == ROOT else self.depths[node] + 1)
            path.append(child)
            node = child
        return path

    def ancestry(self) -> npt.NDArray[np.bool_]:
        """[nodes, nodes]: whether the column's node is the row's node or one of its ancestors."""
        result = np.eye(len(self), dtype=bool)
        for node, parent in enumerate(self.parents):
            if parent != ROOT:
                result[node] |= result[parent]
        return result
