"""One chunk of a tree scorer's plan as tensors: flat rows, their layout, and which of them predict what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from stepcredit.scoring.layout import Block, TreeLayout
from stepcredit.scoring.tree_plan import AnswerTree, Branch, Integers, Job
from stepcredit.scoring.trie import Trie

BRANCHES_PER_BLOCK = 8
"""Branches of one attention call, padded to the longest prefix among them. More waste time on padding, fewer
on calls; 8 was fastest on a CPU."""

ROWS_PER_BLOCK = 64
"""Rows of a trunk in one attention call, which computes, and masks, what the first of them does not see of the last."""


class Run(NamedTuple):
    """Rows that one attention call serves: `branches` times `rows` of them, one after the other.

    Attributes:
        tokens, positions: [branches * rows] int64.
        keys: [branches, keys] int64: rows of the chunk.
        allowed: [branches, rows, keys] bool: which of them each row attends to.
    """

    tokens: Integers
    positions: Integers
    keys: Integers
    allowed: npt.NDArray[np.bool_]


class Hanging(NamedTuple):
    """A branch and the rows of its prefix, [boundary] int64."""

    branch: Branch
    prefix: Integers


@dataclass(frozen=True)
class Chunk:
    """Flat rows: first the trunks, each without the part that one before it brought, then the branches.

    Attributes:
        tokens, positions: [rows] int64, the inputs of the model.
        layout: who attends to whom.
        last_layout: the same of the branches alone: what the last layer makes of a trunk is read by nobody.
        rows, targets: [scored tokens] int64: the row that predicts each scored token, and the token.
        starts: [scorings] int64: where each scoring's tokens begin among them.
        slots: [scorings] int64: which unique scoring of the plan each is.
    """

    tokens: Tensor
    positions: Tensor
    layout: TreeLayout
    last_layout: TreeLayout
    rows: Integers
    targets: Integers
    starts: Integers
    slots: Integers


def build_chunk(jobs: Sequence[Job], trie: Trie, dtype: torch.dtype, device: torch.device) -> Chunk:
    """The jobs as one flat sequence; `dtype` and `device` are the model's."""
    runs, hanging = _trunks(jobs, trie)
    trunk_runs, trunk_rows = len(runs), sum(len(run.tokens) for run in runs)
    size = trunk_rows
    first_rows: list[int] = []
    batches = _batches(hanging)
    for batch in batches:
        runs.append(_branches(batch, size))
        first_rows.extend(range(size, size + len(runs[-1].tokens), len(batch[0].branch.tree)))
        size += len(runs[-1].tokens)
    branches = [item.branch for batch in batches for item in batch]
    trees = [branch.tree for branch in branches]
    before = np.cumsum([0, *(len(tree.targets) for tree in trees)])
    blocks = [_block(run, dtype, device) for run in runs]
    return Chunk(
        tokens=torch.from_numpy(np.concatenate([run.tokens for run in runs])).to(device),
        positions=torch.from_numpy(np.concatenate([run.positions for run in runs])).to(device),
        layout=TreeLayout(blocks),
        last_layout=TreeLayout(blocks[trunk_runs:], trunk_rows),
        rows=np.concatenate([row + tree.nodes for row, tree in zip(first_rows, trees, strict=True)]),
        targets=np.concatenate([tree.targets for tree in trees]),
        starts=np.concatenate([start + tree.starts for start, tree in zip(before, trees, strict=False)]),
        slots=np.concatenate([branch.first + np.arange(len(branch.tree.starts)) for branch in branches]),
    )


def _trunks(jobs: Sequence[Job], trie: Trie) -> tuple[list[Run], list[Hanging]]:
    """The trunks' runs, and the branches with the rows of their prefixes."""
    row_of: dict[int, int] = {}
    runs: list[Run] = []
    hanging: list[Hanging] = []
    for job in jobs:
        shared = next((depth for depth, node in enumerate(job.path) if node not in row_of), len(job.path))
        own = job.path[shared:]
        row_of.update(zip(own, range(len(row_of), len(row_of) + len(own)), strict=True))
        rows = np.array([row_of[node] for node in job.path], dtype=np.int64)
        for start in range(shared, len(rows), ROWS_PER_BLOCK):
            end = min(start + ROWS_PER_BLOCK, len(rows))
            tokens = np.array([trie.tokens[node] for node in job.path[start:end]], dtype=np.int64)
            causal = np.tri(end - start, end, start, dtype=bool)
            runs.append(Run(tokens, np.arange(start, end), rows[None, :end], causal[None]))
        hanging.extend(Hanging(branch, rows[: branch.boundary]) for branch in job.branches)
    return runs, hanging


def _batches(hanging: Sequence[Hanging]) -> list[list[Hanging]]:
    """Branches of the same tree and of similar prefix length together."""
    by_tree: dict[AnswerTree, list[Hanging]] = {}
    for item in hanging:
        by_tree.setdefault(item.branch.tree, []).append(item)
    batches = []
    for same in by_tree.values():
        same.sort(key=lambda item: item.branch.boundary)
        batches += [same[i : i + BRANCHES_PER_BLOCK] for i in range(0, len(same), BRANCHES_PER_BLOCK)]
    return batches


def _branches(batch: Sequence[Hanging], first_row: int) -> Run:
    """Branches of one tree as a run: a row attends to its whole prefix and its ancestors in its own tree."""
    tree = batch[0].branch.tree
    boundaries = np.array([item.branch.boundary for item in batch])
    longest = int(boundaries.max())
    keys = np.zeros((len(batch), longest + len(tree)), dtype=np.int64)  # padding points at row 0 and is masked
    for branch, item in enumerate(batch):
        keys[branch, : len(item.prefix)] = item.prefix
    keys[:, longest:] = first_row + np.arange(len(batch) * len(tree)).reshape(len(batch), len(tree))
    allowed = np.empty((len(batch), len(tree), longest + len(tree)), dtype=bool)
    allowed[:, :, :longest] = (np.arange(longest) < boundaries[:, None])[:, None]
    allowed[:, :, longest:] = tree.ancestry
    positions = boundaries[:, None] + tree.depths
    return Run(np.tile(tree.tokens, len(batch)), positions.ravel(), keys, allowed)


def _block(run: Run, dtype: torch.dtype, device: torch.device) -> Block:
    mask = np.where(run.allowed, np.float32(0), np.float32("-inf"))[:, None]
    return Block(torch.from_numpy(run.keys).to(device), torch.from_numpy(mask).to(device=device, dtype=dtype))
