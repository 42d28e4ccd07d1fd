"""Splits: disjoint up to the order of the numbers, a function of seed and puzzles, refused when too small."""

from __future__ import annotations

import random

import pytest

from stepcredit.countdown.prompt import completion_text
from stepcredit.countdown.puzzle import Puzzle
from stepcredit.data.cleaning import CleanRow
from stepcredit.data.space import enumerate_puzzles
from stepcredit.data.splits import (
    SplitData,
    assign_splits,
    check_disjoint,
    check_split_data,
    split,
)
from stepcredit.provenance.errors import UserError
from stepcredit.settings.data import DataSettings, SplitSettings

PUZZLES = [Puzzle((1, 2, number), 50) for number in range(3, 103)]


def settings(validation: int = 10, heldout: int = 20, rl_share: float = 0.4) -> SplitSettings:
    return SplitSettings(validation=validation, heldout=heldout, rl_share=rl_share)


def file_settings(splits: SplitSettings) -> DataSettings:
    return DataSettings.model_validate(
        {"source": "file", "file": {"path": "rows.jsonl"}, "splits": splits.model_dump()}
    )


def row(puzzle: Puzzle) -> CleanRow:
    return CleanRow(puzzle, completion_text("Try.", "1"))


def test_sizes_are_those_asked_for_and_every_puzzle_has_one_place() -> None:
    splits = assign_splits(PUZZLES, settings(), seed=0)
    # 100 puzzles: 20 held out, 10 for validation, 0.4 of the remaining 70 to RL.
    assert len(splits.heldout) == 20
    assert len(splits.validation) == 10
    assert len(splits.rl) == 28
    assert len(splits.demonstrations) == 42
    everything = splits.heldout + splits.validation + splits.rl + splits.demonstrations
    assert {puzzle.key for puzzle in everything} == {puzzle.key for puzzle in PUZZLES}


def test_splits_do_not_depend_on_the_order_or_the_repeats_of_the_rows() -> None:
    shuffled = PUZZLES * 3
    random.Random(1).shuffle(shuffled)
    assert assign_splits(shuffled, settings(), seed=0) == assign_splits(PUZZLES, settings(), seed=0)


def test_another_seed_holds_out_other_puzzles() -> None:
    one, other = (set(assign_splits(PUZZLES, settings(), seed).heldout) for seed in (0, 1))
    assert one != other


def test_a_larger_rl_share_leaves_the_held_out_puzzles_as_they_are() -> None:
    one, other = (assign_splits(PUZZLES, settings(rl_share=share), seed=0) for share in (0.1, 0.9))
    assert (one.heldout, one.validation) == (other.heldout, other.validation)


def test_puzzles_that_differ_in_order_alone_are_one() -> None:
    turned = [Puzzle(puzzle.nums[::-1], puzzle.target) for puzzle in PUZZLES]
    splits = assign_splits([*PUZZLES, *turned], settings(), seed=0)
    assert len(splits.heldout + splits.validation + splits.rl + splits.demonstrations) == 100


def test_without_an_rl_share_both_use_every_train_puzzle() -> None:
    splits = assign_splits(PUZZLES, settings(rl_share=0), seed=0)
    assert splits.rl == splits.demonstrations
    assert len(splits.rl) == 70


def test_too_few_puzzles_are_counted_and_the_key_to_lower_is_named() -> None:
    with pytest.raises(UserError, match=r"100 puzzles exist, .*leave 0 to train on: lower data.splits.heldout"):
        assign_splits(PUZZLES, settings(heldout=90), seed=0)


def test_a_share_that_leaves_nothing_to_sft_is_refused() -> None:
    with pytest.raises(UserError, match=r"data.splits.rl_share is 1.0: of 70 puzzles"):
        assign_splits(PUZZLES, settings(rl_share=1), seed=0)


def test_rows_of_rl_and_evaluation_puzzles_are_kept_from_sft() -> None:
    rows = [row(Puzzle(puzzle.nums[::-1], puzzle.target)) for puzzle in PUZZLES for _ in range(2)]
    data = split(rows, file_settings(settings()))
    assert len(data.demonstrations) == 84
    kept = {row.puzzle.key for row in data.demonstrations}
    assert not kept & {puzzle.key for puzzle in data.rl + data.validation + data.heldout}


def test_synthetic_splits_cover_puzzles_without_demonstrations() -> None:
    data_settings = DataSettings()
    puzzles = enumerate_puzzles(data_settings.synthetic)
    first = assign_splits(puzzles, data_settings.splits, 0).demonstrations[0]
    data = split([row(first)], data_settings)
    assert len(data.demonstrations) == 1
    assert len(data.heldout) == 512
    assert len(data.validation) == 256
    # The default settings have 4,379 puzzles: 3,611 to train on, 0.4 of them for RL.
    assert len(puzzles) == 4379
    assert len(data.rl) == 1444


def test_rows_of_other_settings_are_refused() -> None:
    with pytest.raises(UserError, match="none of the 1 clean rows"):
        split([row(Puzzle((97, 98, 99), 294))], DataSettings())


def test_a_shared_puzzle_is_found_whatever_its_order() -> None:
    with pytest.raises(UserError, match=r"heldout and rl share 1 puzzles, such as \[1, 2, 3\] for 50"):
        check_disjoint({"heldout": [Puzzle((3, 1, 2), 50)], "rl": [Puzzle((1, 2, 3), 50), Puzzle((1, 2, 3), 51)]})
    check_disjoint({"heldout": [Puzzle((3, 1, 2), 50)], "rl": [Puzzle((1, 2, 3), 51)]})


def test_only_sft_and_rl_may_share_and_only_when_said() -> None:
    one, two, three = PUZZLES[:3]
    shared = SplitData(demonstrations=(row(one),), rl=(one,), validation=(two,), heldout=(three,))
    check_split_data(shared, shared_training=True)
    with pytest.raises(UserError, match="demonstrations and rl share 1"):
        check_split_data(shared, shared_training=False)
    leaked = SplitData(demonstrations=(row(one),), rl=(two,), validation=(two,), heldout=(three,))
    with pytest.raises(UserError, match="validation and train share 1"):
        check_split_data(leaked, shared_training=True)
