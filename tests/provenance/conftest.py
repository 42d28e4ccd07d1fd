"""A small results directory."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from made_results import HELDOUT, Results, evaluation_rows, puzzles, sft_rows, write_model


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """raw -> splits -> SFT -> evaluation, the configuration, and what needs no manifest."""
    made = Results(tmp_path / "results")
    made.root.mkdir()
    (made / "config.yaml").write_text(yaml.safe_dump({"arms": {}}))
    (made / "README.md").write_text("What each file is.\n")
    (made / "logs/sft").mkdir(parents=True)
    (made / "logs/sft/train.log").write_text("step 1\n")
    demonstrations = [
        {"nums": [7, 8], "target": 15, "prompt": "7 8 = 15", "completion": completion}
        for completion in ("7 + 8", "8 + 7")
    ]
    splits = [f"data/splits/{name}.parquet" for name in ("demonstrations", "rl", "validation", "heldout")]

    def split() -> None:
        made.write(splits[0], demonstrations)
        made.write(splits[1], puzzles([([7, 9], 16)]))
        made.write(splits[2], puzzles([([5, 6], 11)]))
        made.write(splits[3], puzzles(HELDOUT))

    raw = [{"nums": None, "target": None, "query": "7 8 = 15", "response": "7 + 8"}]
    made.stage("make-raw", [], ["data/raw.parquet"], lambda: made.write("data/raw.parquet", raw), seed=0)
    made.stage("split", ["data/raw.parquet"], splits, split)

    def train() -> None:
        write_model(made / "sft/model")
        made.write("sft/metrics.parquet", sft_rows())

    made.stage("train-sft", splits[:1], ["sft/metrics.parquet", "sft/model"], train, seed=3)
    made.stage(
        "evaluate",
        [splits[3], "sft/model"],
        ["eval/sft/step0.parquet"],
        lambda: made.write("eval/sft/step0.parquet", evaluation_rows()),
    )
    return made
