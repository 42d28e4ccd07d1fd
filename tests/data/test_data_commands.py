"""The commands ingest, clean, split and grade, end to end on small data."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import Result
from typer.testing import CliRunner

from stepcredit.cli.data import commands
from stepcredit.countdown.puzzle import Puzzle
from stepcredit.countdown.verifier import grade
from stepcredit.provenance.errors import UserError
from stepcredit.provenance.schemas import check_schema
from stepcredit.settings.data import DataSettings

SETTINGS = DataSettings.model_validate(
    {"synthetic": {"demonstrations": 400}, "splits": {"validation": 50, "heldout": 100}}
).canonical_json()
GOOD = {"nums": [3, 5, 2], "target": 16, "completion": "<reasoning></reasoning><solution>(3+5)*2</solution>"}


def run(*arguments: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(commands, [str(argument) for argument in arguments], input=stdin)


def test_ingest_clean_split_write_the_documented_tables_twice_the_same(tmp_path: Path) -> None:
    contents = []
    for name in ("one", "two"):
        data = tmp_path / name
        raw, clean, funnel, splits = (data / name for name in ("raw.parquet", "clean.parquet", "funnel.csv", "splits"))
        steps: list[tuple[object, ...]] = [
            ("ingest", "--settings", SETTINGS, "--out", raw, "--manifest", data / "raw.json"),
            ("clean", "--in", raw, "--out", clean, "--funnel", funnel, "--manifest", data / "clean.json"),
            (
                "split",
                "--settings",
                SETTINGS,
                "--clean",
                clean,
                "--out-dir",
                splits,
                "--manifest",
                splits / "m",
            ),
        ]
        for step in steps:
            result = run(*step)
            assert result.exit_code == 0, result.output + repr(result.exception)
        files = [raw, clean, funnel, *sorted(splits.glob("*.parquet"))]
        contents.append([path.read_bytes() for path in files])
    assert contents[0] == contents[1]

    assert check_schema(raw, "raw") == []
    assert check_schema(clean, "demonstrations") == []
    assert check_schema(splits / "demonstrations.parquet", "demonstrations") == []
    for name in ("rl", "validation", "heldout"):
        assert check_schema(splits / f"{name}.parquet", "puzzles") == []
    rows = pq.read_table(clean).to_pylist()
    stages = {row["stage"]: int(row["rows"]) for row in csv.DictReader(funnel.open())}
    assert stages["read"] == 400
    assert stages["kept"] == len(rows) == 400 - sum(list(stages.values())[1:-1])
    for row in rows:
        assert grade(row["completion"], Puzzle(tuple(row["nums"]), row["target"])).reward == 1.0


def test_clean_writes_jsonl_where_the_name_says_so(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text(json.dumps({"nums": [3, 5, 2], "target": 16, "response": "<answer>(3+5)×2</answer>"}) + "\n")
    result = run("clean", "--in", source, "--out", tmp_path / "out.jsonl", "--funnel", tmp_path / "funnel.csv")
    assert result.exit_code == 0, repr(result.exception)
    assert json.loads((tmp_path / "out.jsonl").read_text()) == {
        "nums": [3, 5, 2],
        "target": 16,
        "prompt": "Numbers: 3 5 2\nTarget: 16\n",
        "completion": "<reasoning></reasoning>\n<solution>(3+5)*2</solution>",
    }


@pytest.mark.parametrize("rows", [0, 1])
def test_clean_leaves_no_output_when_it_fails(tmp_path: Path, rows: int) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"response": "a", "query": "b"}\n' * rows + '{"broken\n')
    result = run("clean", "--in", source, "--out", tmp_path / "out.parquet", "--funnel", tmp_path / "funnel.csv")
    assert isinstance(result.exception, UserError)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl"]


def test_grade_reads_and_writes_files(tmp_path: Path) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(json.dumps(GOOD) + "\n" + json.dumps(GOOD | {"completion": "no"}) + "\n")
    result = run("grade", "--in", source, "--out", out)
    assert result.exit_code == 0, repr(result.exception)
    assert [json.loads(line)["reason"] for line in out.read_text().splitlines()] == ["correct", "malformed"]


def test_grade_reads_standard_input_and_writes_standard_output() -> None:
    result = run("grade", "--in", "-", "--out", "-", stdin=json.dumps(GOOD) + "\n")
    assert result.exit_code == 0, repr(result.exception)
    assert json.loads(result.stdout) == GOOD | {"reward": 1.0, "answer": "(3+5)*2", "reason": "correct"}


def test_grade_leaves_no_output_when_a_row_is_bad(tmp_path: Path) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(json.dumps(GOOD) + "\n{}\n")
    result = run("grade", "--in", source, "--out", out)
    assert isinstance(result.exception, UserError)
    assert f"{source}: line 2: has no nums" in str(result.exception)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl"]


def test_grade_of_an_absent_file_is_the_users_mistake(tmp_path: Path) -> None:
    result = run("grade", "--in", tmp_path / "absent.jsonl", "--out", "-")
    assert isinstance(result.exception, UserError)
    assert "absent.jsonl: cannot be read" in str(result.exception)
