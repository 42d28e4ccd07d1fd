import json
import math
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest

from stepcredit.countdown.prompt import completion_text, prompt_text
from stepcredit.countdown.puzzle import Puzzle
from stepcredit.modeling.tokenizer import TextCodec, build_tokenizer
from stepcredit.provenance.errors import UserError
from stepcredit.provenance.schemas import check_schema
from stepcredit.scoring.scorer import ScoringCost
from stepcredit.settings.arm import ShapingSettings
from stepcredit.tables import write_rows
from stepcredit.training.prime_rl.collect import collect_rl, collect_sft
from stepcredit.training.prime_rl.credit import TraceCredit
from stepcredit.training.prime_rl.model_directory import export
from stepcredit.training.records import ROLLOUTS_SCHEMA

CODEC = TextCodec(build_tokenizer(40))
PUZZLE = Puzzle((3, 5, 2), 16)
RIGHT, WRONG = ("Try 3 + 5 = 8, 8 * 2 = 16.", "(3 + 5) * 2"), ("Try 3 + 5 = 8.\n\nToo low.", "3 + 5")


TASK = SimpleNamespace(data=SimpleNamespace(numbers=list(PUZZLE.nums), target=PUZZLE.target))


class Node:
    def __init__(self, token_ids, sampled):
        self.token_ids = token_ids
        self.mask = [sampled] * len(token_ids)
        self.logprobs = [-0.5] * len(token_ids) if sampled else []


class Trace:
    task = TASK
    is_truncated = False

    def __init__(self, reasoning, answer):
        sampled = [*CODEC.encode(completion_text(reasoning, answer)), CODEC.eos_id]
        self.nodes = [Node(CODEC.encode_prompt(prompt_text(PUZZLE)), False), Node(sampled, True)]
        self.info = {}

    def record(self, advantages):
        nodes = [dict(vars(node)) for node in self.nodes]
        nodes[1]["advantages"] = advantages
        data = {"numbers": list(PUZZLE.nums), "target": PUZZLE.target}
        return {"task": {"data": data}, "nodes": nodes, "info": self.info, "calls": [{"finish_reason": "stop"}]}


class LongerIsLikelier:
    """Scores each answer by the length of its prefix, the right one twice."""

    def score(self, requests):
        found = [
            np.array([[b * (2.0 if i == 0 else 1.0) / 100 for i in range(len(r.answers))] for b in r.boundaries])
            for r in requests
        ]
        return found, ScoringCost(scorings=4, scorings_unique=3, tokens_computed=10)


@pytest.fixture
def run(tmp_path):
    """A run directory of one step with one group, as prime-rl leaves it."""
    traces = [Trace(*RIGHT), Trace(*WRONG)]
    advantages = TraceCredit(CODEC, LongerIsLikelier(), ShapingSettings()).assign(traces)
    path = tmp_path / "rollouts" / "step_1" / "train" / "effective" / "traces.jsonl"
    path.parent.mkdir(parents=True)
    records = [trace.record(values) for trace, values in zip(traces, advantages, strict=True)]
    path.write_text("".join(json.dumps({"group": {"id": "g"}, "traces": [record]}) + "\n" for record in records))
    rows = [
        {"step": 1, "optim/lr": 1e-6, "optim/grad_norm": 0.5},
        {"step": 1, "loss/mean": 0.1, "entropy/all/mean": 0.3, "mismatch_kl/all/mean": 0.01, "is_masked/mean": 0.0},
        {"step": 1, "time/forward_backward": 2.0, "time/wait_for_batch": 3.0, "time/broadcast_weights": 1.0},
    ]
    (tmp_path / "trainer.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def collected(run, steps=1):
    return collect_rl(run, run / "trainer.jsonl", CODEC, steps=steps, max_new_tokens=64, keep_every=10)


def test_a_group_gets_one_advantage_a_sampled_token_and_shaping_in_its_paragraphs():
    right, wrong = Trace(*RIGHT), Trace(*WRONG)
    advantages = TraceCredit(CODEC, LongerIsLikelier(), ShapingSettings()).assign([right, wrong])
    assert [len(values) for values in advantages] == [len(trace.nodes[1].token_ids) for trace in (right, wrong)]
    assert advantages[0][-1] == 0.5
    assert advantages[1][-1] == -0.5
    assert any(value != 0.5 for value in advantages[0])
    assert right.info["stepcredit"]["advantage"] == 0.5


def test_a_run_becomes_the_tables_of_the_native_backend(run):
    log = collected(run)
    for rows, schema, kind in (
        (log.metrics, None, "rl_metrics"),
        (log.rollouts, ROLLOUTS_SCHEMA, "rollouts"),
        (log.timings, None, "timings"),
    ):
        write_rows(run / f"{kind}.parquet", rows, schema)
        assert check_schema(run / f"{kind}.parquet", kind) == []
    (row,) = log.metrics
    assert (row["reward"], row["mixed_groups"], row["entropy"], row["scorings"]) == (0.5, 1.0, 0.3, 4)
    assert row["mismatch_kl"] == 0.01
    assert all(math.isnan(row[name]) for name in ("mean_ratio", "mean_log_ratio", "entropy_gap", "lag"))
    assert pq.read_table(run / "rollouts.parquet")["answer"].to_pylist() == [RIGHT[1], WRONG[1]]


def test_a_step_that_was_not_logged_is_an_error(run):
    with pytest.raises(UserError, match="logged no step 2 of 2"):
        collected(run, steps=2)


def test_sft_tokens_are_differences_of_the_running_total(tmp_path):
    file = tmp_path / "metrics.jsonl"
    rows = [
        {
            "step": step,
            "progress/num_tokens": 100 * step,
            "optim/lr": 1e-5,
            "loss/mean": 1.0,
            "time/forward_backward": 1,
        }
        for step in (1, 2)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [row["tokens"] for row in collect_sft(file, 2).metrics] == [100, 100]


def test_unfinished_weights_are_not_exported(tmp_path):
    source = tmp_path / "step_5"
    source.mkdir()
    (source / "model.safetensors").write_bytes(b"weights")
    with pytest.raises(UserError, match="did not finish"):
        export(source, tmp_path / "model")
    (source / "STABLE").touch()
    export(source, tmp_path / "model")
    assert [file.name for file in (tmp_path / "model").iterdir()] == ["model.safetensors"]
