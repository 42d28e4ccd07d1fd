"""The workloads of the scoring study, by hand, and the study itself on a tiny model with the real vLLM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from stepcredit.countdown.prompt import completion_text, prompt_text
from stepcredit.countdown.puzzle import Puzzle
from stepcredit.countdown.verifier import grade
from stepcredit.credit.contrastive_potential import ContrastivePotential
from stepcredit.modeling.model import build_model, save_model
from stepcredit.modeling.tokenizer import TextCodec, build_tokenizer
from stepcredit.rollouts import Completion, Group, Rollout
from stepcredit.scoring.scorer import ScoringRequest
from stepcredit.scoring.tree import TreeScorer
from stepcredit.settings.arm import ShapingSettings
from stepcredit.settings.model import ModelSettings
from stepcredit.settings.rl import RLSettings
from stepcredit.settings.sampler import SamplerSettings
from stepcredit.settings.scoring import ScoringJob, ScoringSettings
from stepcredit.studies.scoring.benchmark import benchmark, roomy
from stepcredit.studies.scoring.counters import TokenCounters
from stepcredit.studies.scoring.plain import plain_scores
from stepcredit.studies.scoring.steps import time_steps
from stepcredit.studies.scoring.workload import long_request, recorded_requests
from stepcredit.tables import write_rows
from stepcredit.training.records import ROLLOUTS_SCHEMA, rollout_rows

PUZZLE = Puzzle((3, 5, 2), 16)
COMPLETIONS = [
    completion_text("Try 3 + 5 = 8, 8 * 2 = 16.\n\nFound it.", "(3 + 5) * 2"),
    completion_text("Try 3 * 5 = 15, 15 + 2 = 17. Too high by 1.\n\nTry 3 + 5 = 8.", "3 * 5 + 2"),
]
SHAPING = ShapingSettings()
SHAPE = ModelSettings(
    hidden_size=32, layers=2, intermediate_size=64, attention_heads=2, key_value_heads=1, head_dim=32, max_positions=128
)
JOB = ScoringJob(
    scoring=ScoringSettings(repetitions=2, steps=1, prompts_per_step=2),
    sampler=SamplerSettings(max_model_len=96, max_concurrent=16, kv_cache_mib=16),
    rl=RLSettings(prompts_per_step=4, rollouts_per_prompt=2, max_new_tokens=20),
    shaping=SHAPING,
    seed=0,
)


@pytest.fixture(scope="module")
def codec() -> TextCodec:
    torch.set_num_threads(1)
    return TextCodec(build_tokenizer(100))


@pytest.fixture(scope="module")
def checkpoint(codec: TextCodec, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("sft") / "model"
    model = build_model(SHAPE, codec, seed=0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 3
    save_model(model, codec, directory)
    return directory


def group(codec: TextCodec, cut: bool = False) -> Group:
    rollouts = []
    for text in COMPLETIONS:
        ids = (*codec.encode(text), codec.eos_id)
        completion = Completion(ids, (-1.0,) * len(ids), finished=True)
        prompt = tuple(codec.encode_prompt(prompt_text(PUZZLE)))
        rollouts.append(Rollout(prompt, completion, codec.decode(ids), grade(codec.decode(ids), PUZZLE)))
    if cut:
        ids = rollouts[0].completion.token_ids[:9]
        rollouts[1] = rollouts[0]
        rollouts.append(Rollout(prompt, Completion(ids, (-1.0,) * 9, False), codec.decode(ids), grade("", PUZZLE)))
    return Group(PUZZLE, rollouts)


@pytest.fixture
def recorded(codec: TextCodec, tmp_path: Path) -> tuple[Path, list[ScoringRequest]]:
    """Rollouts of two steps as a run keeps them, and what their shaping asked of its scorer."""
    asked: list[ScoringRequest] = []

    class Spy(TreeScorer):
        def score(self, requests: Any) -> Any:
            asked.extend(requests)
            return super().score(requests)

    credit = ContrastivePotential(Spy(build_model(SHAPE, codec, seed=1)), codec, SHAPING)
    rows = []
    for step in (1, 2):
        groups = [group(codec), group(codec, cut=True)]  # the second is all right and is not scored
        rows += list(rollout_rows(step, groups, credit.assign(groups)[0]))
    write_rows(tmp_path / "rollouts.parquet", rows, ROLLOUTS_SCHEMA)
    return tmp_path / "rollouts.parquet", asked


def test_recorded_rollouts_ask_again_what_they_asked_when_they_were_sampled(codec, recorded):
    path, asked = recorded
    assert len(asked) == 4
    assert recorded_requests(path, codec, SHAPING, 10_000) == asked


def test_a_workload_is_cut_at_whole_rollouts(codec, recorded):
    path, asked = recorded
    size = len(asked[0]) + len(asked[1])
    assert recorded_requests(path, codec, SHAPING, size) == asked[:2]
    assert recorded_requests(path, codec, SHAPING, size - 1) == asked[:1]
    assert recorded_requests(path, codec, SHAPING, 1) == asked[:1]


def test_a_long_trunk_is_recorded_trunks_one_after_the_other_with_their_boundaries():
    requests = [
        ScoringRequest((5, 6, 7), (2, 3), (1,), ((8,), (9,), (10,))),
        ScoringRequest((11, 12, 13, 14), (1, 4), (1,), ((8,),)),
    ]
    (long,) = long_request(requests, trunk=9, scorings=9)
    assert long.trunk == (5, 6, 7, 11, 12, 13, 14, 5, 6)
    assert long.boundaries == (2, 3, 4, 7, 9)
    assert long.answers == ((8,), (9,))  # a contrast needs two
    assert long_request(requests, trunk=4, scorings=9)[0].answers == ((8,), (9,), (10,))
    assert long_request([], 4, 9) == []


def test_a_server_that_does_not_count_its_tokens_is_refused():
    class Client:
        def get_text(self, path: str) -> str:
            return (
                'vllm:prompt_tokens_total{engine="0",model_name="m"} 1.2e+03\nvllm:prompt_tokens_created{} 9\n' + rest
            )

    rest = 'vllm:prompt_tokens_cached_total{engine="0"} 7.0'
    assert TokenCounters(Client()).read() == (1200, 7)  # type: ignore[arg-type]
    rest = ""
    with pytest.raises(RuntimeError, match="prompt_tokens_cached_total"):
        TokenCounters(Client()).read()  # type: ignore[arg-type]


def test_every_scorer_is_measured_in_turn_and_agrees_with_plain_forwards(checkpoint, codec, recorded, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    requests = recorded_requests(recorded[0], codec, SHAPING, 10_000)
    rows = benchmark("run", checkpoint, requests, JOB)
    assert [(row["scorer"], row["repetition"]) for row in rows] == [
        ("plain", 0),
        *[(name, turn) for turn in (0, 1) for name in ("naive", "batched", "cached", "engine", "tree")],
    ]
    plain = np.array(rows[0]["scores"])
    by_name = {row["scorer"]: row for row in rows}
    for row in rows[1:]:
        np.testing.assert_allclose(row["scores"], plain, rtol=0, atol=1e-4)
        assert row["scorings"] == len(plain) == 2 * sum(len(request) for request in requests[:2])
        assert row["tokens_minimum"] == rows[0]["tokens_minimum"]
    assert by_name["naive"]["tokens_cached"] == 0
    lengths = [len(scoring.tokens) for request in requests for scoring in request.scorings()]
    assert by_name["naive"]["tokens_computed"] == sum(lengths)
    assert by_name["naive"]["requests"] == len(plain)
    assert by_name["batched"]["requests"] == by_name["cached"]["requests"] == 1
    assert by_name["cached"]["tokens_computed"] == by_name["cached"]["tokens_minimum_blocks"]
    assert by_name["engine"]["tokens_cached"] > 0
    assert by_name["tree"]["tokens_computed"] == by_name["tree"]["tokens_minimum"]
    assert benchmark("run", checkpoint, [], JOB) == []


def test_a_slow_scorer_is_measured_once(checkpoint, recorded, codec, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    requests = long_request(recorded_requests(recorded[0], codec, SHAPING, 100), trunk=110, scorings=8)
    scoring = JOB.scoring.model_copy(update={"enough_seconds": 1e-9})
    job = roomy(JOB.model_copy(update={"scoring": scoring}), requests)
    assert job.sampler.max_model_len > 110
    rows = benchmark("large", checkpoint, requests, job)
    assert [row["scorer"] for row in rows] == ["plain", "naive", "batched", "cached", "engine", "tree"]


def test_each_scorer_repeats_the_same_steps(checkpoint, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    rows = time_steps(checkpoint, [PUZZLE, Puzzle((4, 6, 2), 12)], JOB)
    variants = list(dict.fromkeys((row["model"], row["scorer"]) for row in rows))
    assert variants[0] == ("none", "none")
    assert ("frozen", "engine") not in variants
    assert len(variants) == 1 + 4 + 5
    assert {row["phase"] for row in rows} == {"generate", "score", "train", "push"}
    assert {(row["prompts"], row["run_prompts"]) for row in rows} == {(2, 4)}


def test_plain_scores_leave_the_model_as_it_was(codec):
    model = build_model(SHAPE, codec, seed=0)
    before = model.config._attn_implementation
    request = ScoringRequest((5, 6, 7), (1, 3), (8,), ((9, 10), (11,)))
    (scores,) = plain_scores(model, [request])
    assert model.config._attn_implementation == before
    np.testing.assert_allclose(TreeScorer(model).score([request])[0][0], scores, rtol=0, atol=1e-5)
