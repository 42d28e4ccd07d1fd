"""Which puzzles serve which purpose: demonstrations for SFT, RL, validation, held-out evaluation.

A puzzle is known by its numbers, in any order, and its target. The assignment is a function of the set of
puzzles, the settings and the seed: neither the order of the rows nor how often a puzzle occurs matters.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stepcredit.countdown.puzzle import Puzzle, PuzzleKey
from stepcredit.data.cleaning import CleanRow
from stepcredit.data.space import enumerate_puzzles
from stepcredit.provenance.errors import UserError
from stepcredit.settings.data import DataSettings, SplitSettings


@dataclass(frozen=True)
class PuzzleSplits:
    """The puzzles of each split; `demonstrations` and `rl` are the same where `rl_share` is 0."""

    demonstrations: tuple[Puzzle, ...]
    rl: tuple[Puzzle, ...]
    validation: tuple[Puzzle, ...]
    heldout: tuple[Puzzle, ...]


@dataclass(frozen=True)
class SplitData:
    """What is written for each split: rows to learn from, puzzles to roll out."""

    demonstrations: tuple[CleanRow, ...]
    rl: tuple[Puzzle, ...]
    validation: tuple[Puzzle, ...]
    heldout: tuple[Puzzle, ...]


def split(rows: Sequence[CleanRow], settings: DataSettings) -> SplitData:
    """Split the clean rows; the demonstrations are those whose puzzle belongs to SFT.

    The puzzles are all that the settings allow where we generate them, else those that occur in the rows.

    Raises:
        UserError: there are too few puzzles, no row is left to learn from, or two splits share a puzzle.
    """
    if settings.source == "synthetic":
        puzzles = enumerate_puzzles(settings.synthetic)
    else:
        puzzles = [row.puzzle for row in rows]
    assigned = assign_splits(puzzles, settings.splits, settings.seed)
    wanted = {puzzle.key for puzzle in assigned.demonstrations}
    kept = tuple(row for row in rows if row.puzzle.key in wanted)
    if not kept:
        raise UserError(
            f"none of the {len(rows)} clean rows has a puzzle of SFT's: ingest and clean them with the same"
            " data settings as are given here"
        )
    result = SplitData(kept, assigned.rl, assigned.validation, assigned.heldout)
    check_split_data(result, shared_training=settings.splits.rl_share == 0)
    return result


def assign_splits(puzzles: Iterable[Puzzle], settings: SplitSettings, seed: int) -> PuzzleSplits:
    """Assign each puzzle to a split; of those that differ only in the order of their numbers, the first.

    Held-out puzzles are drawn first, then validation; `rl_share` of what remains goes to RL, the rest to SFT.

    Raises:
        UserError: too few puzzles; the message says how many there are and what to lower.
    """
    first: dict[PuzzleKey, Puzzle] = {}
    for puzzle in puzzles:
        first.setdefault(puzzle.key, puzzle)
    order = sorted(first)
    random.Random(f"splits {seed}").shuffle(order)
    drawn = [first[key] for key in order]
    heldout, drawn = drawn[: settings.heldout], drawn[settings.heldout :]
    validation, train = drawn[: settings.validation], drawn[settings.validation :]
    share = round(settings.rl_share * len(train))
    rl, demonstrations = (train[:share], train[share:]) if settings.rl_share else (train, train)
    if not rl or not demonstrations:
        raise UserError(_too_few(len(order), len(train), settings))
    return PuzzleSplits(tuple(demonstrations), tuple(rl), tuple(validation), tuple(heldout))


def check_disjoint(splits: Mapping[str, Iterable[Puzzle]]) -> None:
    """Refuse splits that share a puzzle, up to the order of the numbers.

    Raises:
        UserError: names two splits, how many puzzles they share, and one of these.
    """
    keys = {name: {puzzle.key for puzzle in puzzles} for name, puzzles in splits.items()}
    for one, other in itertools.combinations(keys, 2):
        shared = sorted(keys[one] & keys[other])
        if shared:
            nums, target = shared[0]
            raise UserError(
                f"{one} and {other} share {len(shared)} puzzles, such as {list(nums)} for {target}:"
                " make the splits anew from the clean rows"
            )


def check_split_data(data: SplitData, shared_training: bool) -> None:
    """Check that no puzzle serves two purposes; SFT and RL may share theirs where `shared_training` says so.

    Raises:
        UserError: see `check_disjoint`.
    """
    demonstrations = [row.puzzle for row in data.demonstrations]
    apart = {"heldout": data.heldout, "validation": data.validation}
    if shared_training:
        check_disjoint(apart | {"train": (*demonstrations, *data.rl)})
    else:
        check_disjoint(apart | {"demonstrations": demonstrations, "rl": data.rl})


def _too_few(existing: int, train: int, settings: SplitSettings) -> str:
    if train < 2:
        return (
            f"{existing} puzzles exist, and data.splits.heldout ({settings.heldout}) and"
            f" data.splits.validation ({settings.validation}) leave {train} to train on: lower"
            " data.splits.heldout, or give more puzzles (data.synthetic.largest_number, or more rows)"
        )
    return (
        f"data.splits.rl_share is {settings.rl_share}: of {train} puzzles to train on, RL or SFT would get"
        " none; choose a share that leaves some to both, or 0 to give all to both"
    )
