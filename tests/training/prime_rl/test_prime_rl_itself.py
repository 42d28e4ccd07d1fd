"""prime-rl's own code, where there is some."""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from real_env_server import stub_logprob
from tiny_qwen3 import MAX_LENGTH, build_checkpoint, plain_scores, workload

from stepcredit import jobs
from stepcredit.config_files import load_config
from stepcredit.countdown.prompt import completion_text, prompt_text
from stepcredit.countdown.puzzle import Puzzle
from stepcredit.countdown.verifier import TRUNCATED, grade
from stepcredit.credit.contrastive_potential import ContrastivePotential
from stepcredit.modeling.tokenizer import TextCodec, build_tokenizer
from stepcredit.rollouts import Completion, Group, Rollout
from stepcredit.scoring.scorer import ScoringCost
from stepcredit.tables import write_rows
from stepcredit.training.prime_rl.collect import collect_rl, read_step
from stepcredit.training.prime_rl.config import RunPlace, rl_configuration, write_toml
from stepcredit.training.prime_rl.run import free_ports

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent
INTERPRETER = "STEPCREDIT_PRIME_RL_PYTHON"
LIMIT = 600

CODEC = TextCodec(build_tokenizer(40))
PUZZLE = Puzzle((3, 5, 2), 16)
RIGHT, WRONG = ("Try 3 + 5 = 8.\n\nTry 8 * 2 = 16.", "(3 + 5) * 2"), ("Try 3 + 5 = 8.\n\nToo low.", "3 + 5")


@pytest.fixture
def there(tmp_path):
    """Runs a script of this directory with prime-rl's Python and our sources; nothing it started outlives it."""
    python = os.environ.get(INTERPRETER)
    if not python:
        pytest.skip(f"{INTERPRETER} names no Python with prime-rl (docs/howto/prime-rl.md)")

    def run(script, *arguments, path=()):
        environment = {
            **os.environ,
            "PATH": os.pathsep.join([*map(str, path), os.environ["PATH"]]),
            "PYTHONPATH": str(ROOT / "src"),
            "HF_HUB_OFFLINE": "1",
        }
        process = subprocess.Popen(
            [python, str(HERE / script), *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=tmp_path,
            start_new_session=True,
        )
        try:
            out, errors = process.communicate(timeout=LIMIT)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        assert process.returncode == 0, errors
        return json.loads(out.splitlines()[-1])

    return run


def test_prime_rl_itself_accepts_every_file(there, tmp_path):
    command = [sys.executable, "-m", "stepcredit.cli", "prime-rl", "--configfile", str(ROOT / "config" / "paper.yaml")]
    subprocess.run([*command, "--out", str(tmp_path)], cwd=ROOT, check=True)
    found = there("real_prime_rl.py", tmp_path)
    assert "contrastive_potential" in found["algorithms"]
    assert "CountdownConfig" in found["tasksets"]


def rollout(reasoning, answer, finished=True):
    """As the native sampler returns it."""
    text = completion_text(reasoning, answer)
    ids = [*CODEC.encode(text), CODEC.eos_id] if finished else CODEC.encode(text)[:-3]
    text = CODEC.decode(ids)
    return Rollout(
        tuple(CODEC.encode_prompt(prompt_text(PUZZLE))),
        Completion(tuple(ids), (-0.5,) * len(ids), finished),
        text,
        grade(text, PUZZLE) if finished else TRUNCATED,
    )


class Stub:
    """The scorer that the stand-in engine of `real_env_server` is."""

    def score(self, requests):
        scores = [
            math.fsum(stub_logprob(token, at) for at, token in enumerate(tokens) if at >= start)
            for request in requests
            for tokens, start in request.scorings()
        ]
        ends = np.cumsum([len(request) for request in requests])[:-1]
        parts = np.split(np.array(scores), ends)
        return [part.reshape(-1, len(r.answers)) for part, r in zip(parts, requests, strict=True)], ScoringCost()


def test_rollouts_of_prime_rls_env_server_are_graded_and_credited_as_native_ones(there, tmp_path):
    if shutil.which("uv") is None:
        pytest.skip("verifiers' null harness needs uv")
    config = load_config(ROOT / "config" / "config.yaml", ROOT / "config" / "paper.yaml")
    job = jobs.prime_rl_job(config, jobs.rl_job(config, "moving"))
    place = RunPlace(tmp_path, "run", tmp_path / "model", tmp_path / "rl.parquet", port=free_ports())
    CODEC.tokenizer.save_pretrained(place.model)
    write_rows(place.data, [{"nums": list(PUZZLE.nums), "target": PUZZLE.target}])
    write_toml(rl_configuration(job, 1, 2e-6, place), tmp_path / "rl.toml")
    native = [rollout(*RIGHT), rollout(*WRONG), rollout(*RIGHT, finished=False)]
    completions = [
        {"token_ids": r.completion.token_ids, "finish_reason": "stop" if r.completion.finished else "length"}
        for r in native
    ]
    (tmp_path / "completions.json").write_text(json.dumps(completions))
    no_installer = tmp_path / "bin" / "pip"  # the null harness would update uv in the home directory
    no_installer.parent.mkdir()
    no_installer.symlink_to(shutil.which("true"))
    files = [tmp_path / "rl.toml", tmp_path / "completions.json", place.directory]
    asked = there("real_env_server.py", *files, path=[no_installer.parent])
    assert asked["prompts"] == [list(native[0].prompt_ids)] * 3

    ((group, records),) = read_step(place.directory, 1, CODEC)
    assert [record["info"]["answer"] for record in records] == [RIGHT[1], WRONG[1], None]
    assert [record["rewards"]["correct"]["score"] for record in records] == [1.0, 0.0, 0.0]
    assert group == Group(PUZZLE, native)
    (credit,), _ = ContrastivePotential(Stub(), CODEC, job.arm.shaping).assign([group])
    for record, expected in zip(records, credit.rollouts, strict=True):
        assert record["nodes"][-1]["advantages"] == pytest.approx(expected.advantages.tolist())
    assert len(set(records[0]["nodes"][-1]["advantages"])) > 1, "no paragraph was shaped"

    (tmp_path / "trainer.jsonl").write_text('{"step": 1}\n')
    log = collect_rl(place.directory, tmp_path / "trainer.jsonl", CODEC, steps=1, max_new_tokens=768, keep_every=1)
    assert log.metrics[0]["reward"] == pytest.approx(1 / 3)
    assert log.metrics[0]["scorings"] > 0
    assert [row["answer"] for row in log.rollouts] == [RIGHT[1], WRONG[1], None]


def test_the_policys_server_scores_with_our_endpoint_and_never_with_stale_weights(there, tmp_path):
    """prime-rl keeps the prefix cache over a weight update, and updates in the middle of whatever runs."""
    models = {name: build_checkpoint(tmp_path / name, seed) for seed, name in enumerate(("first", "second"))}
    for name in models:
        CODEC.tokenizer.save_pretrained(tmp_path / name)
    config = load_config(ROOT / "config" / "config.yaml", ROOT / "config" / "paper.yaml")
    job = jobs.prime_rl_job(config, jobs.rl_job(config, "moving"))
    sampler = job.sampler.model_copy(update={"dtype": "float32", "max_model_len": MAX_LENGTH})
    place = RunPlace(tmp_path, "run", tmp_path / "first", tmp_path / "rl.parquet", port=free_ports())
    write_toml(rl_configuration(job.model_copy(update={"sampler": sampler}), 1, 2e-6, place), tmp_path / "rl.toml")
    requests = workload(seed=2, rollouts=8) + workload(seed=12, rollouts=8)
    (tmp_path / "requests.json").write_text(json.dumps([asdict(request) for request in requests]))

    files = ["rl.toml", "requests.json", "first", "second"]
    found = there("real_inference_server.py", *(tmp_path / name for name in files))

    expected = {name: plain_scores(model, requests) for name, model in models.items()}
    assert np.abs(expected["first"] - expected["second"]).max() > 1
    for scoring, model in {"cold": "first", "warm": "first", "updated": "second", "updated_meanwhile": "first"}.items():
        scores = np.array(found[scoring]["scores"])
        assert len(scores) >= 1000
        assert np.abs(scores - expected[model]).max() < 1e-4, scoring
    assert found["met"], "the update came after the scoring"
    assert found["cold"]["requests"] == 1
    assert found["warm"]["tokens_cached"] > found["cold"]["tokens_cached"] > 0
