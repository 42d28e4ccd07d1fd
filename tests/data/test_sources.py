"""Sources: one interface, refused where they cannot be read, and the same rows for the same seed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stepcredit.data.cleaning import Funnel, clean
from stepcredit.data.rows import RawRow, read_rows
from stepcredit.data.sources import open_source
from stepcredit.data.space import enumerate_puzzles
from stepcredit.data.splits import assign_splits
from stepcredit.provenance.errors import UserError
from stepcredit.settings.data import DataSettings

QUERY = "Using the numbers [3, 5, 2], create an equation that equals 16."
RESPONSE = "<think>Try.</think>\n<answer>(3+5)*2</answer>"


def synthetic(**changes: object) -> DataSettings:
    return DataSettings.model_validate(
        {
            "synthetic": {"demonstrations": 3000} | changes,
            "splits": {"validation": 100, "heldout": 200},
        }
    )


def write_jsonl(path: Path, *rows: dict[str, object]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


# -- synthetic ---------------------------------------------------------------------------------------------


def test_synthetic_rows_are_a_function_of_the_seed() -> None:
    settings = synthetic()
    rows = list(open_source(settings).rows())
    assert len(rows) == 3000
    assert rows == list(open_source(settings).rows())
    assert rows != list(open_source(settings.model_copy(update={"seed": 1})).rows())


def test_synthetic_rows_are_of_sft_puzzles_only() -> None:
    settings = synthetic()
    splits = assign_splits(enumerate_puzzles(settings.synthetic), settings.splits, settings.seed)
    wanted = {puzzle.key for puzzle in splits.demonstrations}
    rows = list(open_source(settings).rows())
    assert {(row.nums, row.target) for row in rows} <= wanted
    assert not wanted & {puzzle.key for puzzle in splits.rl + splits.validation + splits.heldout}


def test_without_dirt_only_wrong_guesses_are_dropped() -> None:
    funnel = Funnel()
    list(clean(open_source(synthetic(dirty_share=0)).rows(), funnel))
    assert set(funnel.dropped) == {"wrong value"}
    # Of all traces 60% guess, and 50% of the guesses are wrong.
    assert funnel.dropped["wrong value"] / funnel.read == pytest.approx(0.3, abs=0.04)


def test_dirt_is_of_every_kind_in_equal_shares() -> None:
    funnel = Funnel()
    rows = list(open_source(synthetic(dirty_share=1)).rows())
    list(clean(rows, funnel))
    for reason in ("broken tags", "number reused", "number missing"):
        assert funnel.dropped[reason] / funnel.read == pytest.approx(1 / 6, abs=0.03)
    # One sixth by dirt, and the wrong guesses (30%) of the two sixths that cleaning mends.
    assert funnel.dropped["wrong value"] / funnel.read == pytest.approx(1 / 6 + 0.3 / 3, abs=0.03)
    tails = sum(bool(re.search(r"= [0-9]+</answer>", row.response)) for row in rows)
    assert tails / len(rows) == pytest.approx(1 / 6, abs=0.03)
    assert any(set("−×÷") & set(row.response) for row in rows)
    assert funnel.kept > 0


def test_too_large_a_space_is_refused_with_the_key_to_lower() -> None:
    settings = synthetic(numbers=4, largest_number=99)
    with pytest.raises(UserError, match=r"lower data\.synthetic.largest_number"):
        next(open_source(settings).rows())


# -- files -------------------------------------------------------------------------------------------------


def test_both_shapes_of_file_are_read(tmp_path: Path) -> None:
    hub = write_jsonl(tmp_path / "hub.jsonl", {"query": QUERY, "response_ws": RESPONSE, "response_ls": "no"})
    assert list(read_rows(hub)) == [RawRow(None, None, QUERY, RESPONSE)]
    ours = write_jsonl(tmp_path / "ours.jsonl", {"nums": [3, 5, 2], "target": 16, "response": RESPONSE})
    assert list(read_rows(ours)) == [RawRow((3, 5, 2), 16, "", RESPONSE)]
    settings = DataSettings.model_validate({"source": "file", "file": {"path": str(ours)}})
    assert list(open_source(settings).rows()) == list(read_rows(ours))


def test_parquet_is_read_with_its_gaps(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    columns = {
        "nums": [[3, 5, 2], None],
        "target": pa.array([16.0, None]),
        "query": [None, QUERY],
        "response": [RESPONSE, None],
    }
    pq.write_table(pa.table(columns), path)
    assert list(read_rows(path)) == [RawRow((3, 5, 2), 16, "", RESPONSE), RawRow(None, None, QUERY, "")]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"nums": [3], "response": RESPONSE}, "nums, response; give a column response or response_ws"),
        ({"nums": [3], "target": 3}, "give a column response"),
        ({"nums": "3 5", "target": 8, "response": RESPONSE}, "row 1: nums is '3 5'"),
        ({"nums": ["3"], "target": 8, "response": RESPONSE}, "row 1: nums holds '3'"),
        ({"nums": [3, 5], "target": 8.5, "response": RESPONSE}, "row 1: target holds 8.5"),
        ({"nums": [3, 5], "target": 8, "response": 8}, "row 1: response is 8"),
    ],
)
def test_a_file_of_other_columns_or_types_is_refused(tmp_path: Path, row: dict[str, object], message: str) -> None:
    path = write_jsonl(tmp_path / "rows.jsonl", row)
    with pytest.raises(UserError, match=message) as caught:
        list(read_rows(path))
    assert str(path) in str(caught.value)


def test_a_file_that_is_absent_or_broken_or_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        list(read_rows(tmp_path / "absent.jsonl"))
    with pytest.raises(UserError, match="must end in"):
        list(read_rows(write_jsonl(tmp_path / "rows.csv", {})))
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"query": "a", "response": "b"}\n{"query": \n')
    with pytest.raises(UserError, match="cannot be read as jsonl"):
        list(read_rows(broken))
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(UserError, match="cannot be read as parquet"):
        list(read_rows(tmp_path / "broken.parquet"))


# -- hub ---------------------------------------------------------------------------------------------------


def hub(dataset: Path, **changes: object) -> DataSettings:
    """The hub's loader takes a local directory of the same layout for a name."""
    return DataSettings.model_validate({"source": "hub", "hub": {"dataset": str(dataset)} | changes})


def test_hub_columns_are_taken_by_their_configured_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    directory = tmp_path / "countdown"
    directory.mkdir()
    write_jsonl(directory / "train.jsonl", {"query": QUERY, "response_ws": RESPONSE, "response_ls": "worse", "x": 1})
    assert list(open_source(hub(directory)).rows()) == [RawRow(None, None, QUERY, RESPONSE)]
    worse = hub(directory, response_column="response_ls")
    assert [row.response for row in open_source(worse).rows()] == ["worse"]
    with pytest.raises(UserError, match=r"data\.hub\.response_column is answer, but .* has query, response_ws"):
        list(open_source(hub(directory, response_column="answer")).rows())


def test_a_hub_that_cannot_be_reached_names_the_key_and_the_other_sources(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    settings = DataSettings.model_validate({"source": "hub", "hub": {"dataset": "nobody/nothing-of-this-name"}})
    with pytest.raises(UserError) as caught:
        list(open_source(settings).rows())
    message = str(caught.value)
    assert 'data.source is "hub"' in message
    assert 'set data.source to "file" with data.file.path, or to "synthetic"' in message
