from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stepcredit.provenance.schemas import KINDS, SCHEMAS, check_schema, kind_of

ROLLOUT: dict[str, Any] = {
    "step": 10,
    "group": 0,
    "sample": 1,
    "nums": [1, 2, 3],
    "target": 6,
    "completion": "<reasoning>",
    "answer": "1 + 2 + 3",
    "reward": 1.0,
    "well_formed": True,
    "finished": True,
    "tokens": 9,
    "advantage": 0.5,
    "paragraphs": [{"text": "1 + 2", "tokens": 3, "potential_before": 0.0, "potential_after": 0.5, "shaping": 0.05}],
    "likelihoods": [[-1.5], [-0.5]],
    "bank": [{"answer": "1 + 2 + 3", "correct": True, "count": 4}],
}
UNSCORED = [{"text": "1 + 2", "tokens": 3, "potential_before": None, "potential_after": None, "shaping": None}]


def problems(tmp_path: Path, kind: str, *rows: dict[str, Any], table: pa.Table | None = None) -> list[str]:
    path = tmp_path / "table.parquet"
    pq.write_table(pa.Table.from_pylist(list(rows)) if table is None else table, path)
    return check_schema(path, kind)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"answer": None},
        {"bank": []},
        {"bank": None},
        {"likelihoods": None},
        {"paragraphs": UNSCORED},
        {"paragraphs": []},
    ],
    ids=str,
)
def test_rollouts_fit_with_and_without_potentials_answers_and_bank(tmp_path: Path, changes: dict[str, Any]):
    assert problems(tmp_path, "rollouts", ROLLOUT | changes) == []


def test_metrics_of_an_arm_without_shaping_may_lack_its_columns_and_no_others(tmp_path: Path):
    zero = {"int64": 0, "double": 0.0, "bool": False}
    full = {name: zero.get(type_) for name, type_ in SCHEMAS["rl_metrics"].items()}
    assert problems(tmp_path, "rl_metrics", full) == []
    plain = {name: value for name, value in full.items() if value is not None}
    assert len(full) - len(plain) == 9
    assert problems(tmp_path, "rl_metrics", plain) == []
    del plain["entropy"]
    assert problems(tmp_path, "rl_metrics", plain) == ["has no column entropy (double)"]


def test_large_and_dictionary_encoded_strings_are_strings(tmp_path: Path):
    table = pa.table(
        {
            "nums": pa.array([[1, 2]], pa.large_list(pa.int64())),
            "target": pa.array([3]),
            "prompt": pa.array(["a"]).dictionary_encode(),
            "completion": pa.array(["a"], pa.large_string()),
        }
    )
    assert problems(tmp_path, "demonstrations", table=table) == []


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"step": 1.0}, "column step is double, not int64"),
        ({"reward": None}, "column reward is null, not double"),
        ({"nums": ["1"]}, "column nums is list<string>, not list<int64>"),
        ({"extra": 1}, "has a column extra, which rollouts files should not"),
        (
            {"bank": [{"answer": "1"}]},
            "column bank is list<struct<answer: string>>, not list<struct<answer: ",
        ),
    ],
)
def test_a_wrong_column_is_named_with_what_it_should_be(tmp_path: Path, changes: dict[str, Any], problem: str):
    assert any(found.startswith(problem) for found in problems(tmp_path, "rollouts", ROLLOUT | changes))


def test_a_missing_column_and_nulls_where_none_may_be_are_named(tmp_path: Path):
    rows = [{"nums": [1]}, {"nums": None}]
    assert problems(tmp_path, "puzzles", *rows) == [
        "has no column target (int64)",
        "column nums holds 1 nulls, not none",
    ]


def test_kind_of_tells_the_documented_files_apart():
    assert kind_of("data/splits/demonstrations.parquet") == "demonstrations"
    assert kind_of("data/splits/heldout.parquet") == "puzzles"
    assert kind_of("sweep/lr0.001/metrics.parquet") == "rl_metrics"
    assert kind_of("rl/frozen/seed2/rollouts.parquet") == "rollouts"
    assert kind_of("eval/sft/step0.parquet") == kind_of("eval/frozen/seed2/step40.parquet") == "evaluation"
    assert kind_of("tables/arms.csv") is None


def test_every_kind_of_file_has_a_schema_of_readable_types():
    assert set(KINDS.values()) == set(SCHEMAS)
    types = {type_ for schema in SCHEMAS.values() for type_ in schema.values()}
    words = {word for type_ in types for word in re.findall(r"(?:^|<|: )(\w+)", type_)} - {"list", "struct"}
    assert words <= {"int64", "double", "string", "bool", "text", "answer"}
