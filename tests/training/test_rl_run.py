"""RL with the real vLLM on a tiny model: the same bytes whether or not the run was interrupted."""

import signal
import threading

import pandas as pd
import psutil
import pytest

from stepcredit.countdown.puzzle import Puzzle
from stepcredit.credit import contrastive_potential
from stepcredit.credit.answer_bank import AnswerBank, BankedAnswer
from stepcredit.modeling.model import build_model, save_model
from stepcredit.modeling.tokenizer import TextCodec, build_tokenizer
from stepcredit.scoring.transport import HttpClient, ServerError
from stepcredit.scoring.vllm_plugin import SCORE_PATH
from stepcredit.settings.arm import ArmSettings, ScorerSettings
from stepcredit.settings.model import ModelSettings
from stepcredit.settings.rl import RLJob, RLSettings
from stepcredit.settings.sampler import SamplerSettings
from stepcredit.training.checkpoint import StateDirectory
from stepcredit.training.rl import RLRun, RLTrainer, train_rl

SMALL = ModelSettings(
    hidden_size=32, layers=2, intermediate_size=64, attention_heads=2, key_value_heads=1, head_dim=32, max_positions=64
)
FROZEN = ArmSettings(
    label="frozen",
    credit="contrastive_potential",
    scorer={"model": "frozen"},
    shaping={"max_paragraph_len": 8},
)
AVERAGE = FROZEN.model_copy(update={"scorer": ScorerSettings(model="average", decay=0.5)})
SAMPLED = ArmSettings(
    label="sampled",
    credit="prefix_value",
    shaping={"beta": 1.0, "gamma": 1.0, "max_paragraph_len": 8, "continuations": 2},
)
PUZZLES = [Puzzle((3, 5, 2), 16), Puzzle((4, 6, 2), 12), Puzzle((7, 8, 9), 24), Puzzle((1, 2, 3), 9)]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    directory = tmp_path_factory.mktemp("sft") / "model"
    codec = TextCodec(build_tokenizer(30))
    save_model(build_model(SMALL, codec, seed=0), codec, directory)
    return directory


CACHED = FROZEN.model_copy(update={"scorer": ScorerSettings(model="moving", kind="cached")})
BANK = AnswerBank((BankedAnswer((5, 6), "a", True, 1),), (BankedAnswer((5, 7), "b", False, 1),))
"""A model with random weights answers nothing: this is the bank of every group where scoring is what is tested."""


def run(checkpoint, steps, arm=FROZEN):
    job = RLJob(
        arm=arm,
        rl=RLSettings(
            prompts_per_step=2, rollouts_per_prompt=2, max_new_tokens=20, checkpoint_every=1, keep_rollouts_every=1
        ),
        sampler=SamplerSettings(max_model_len=64, max_concurrent=8, kv_cache_mib=16),
        steps=steps,
    )
    return RLRun(job, seed=3, learning_rate=1e-3, model_directory=checkpoint, puzzles=PUZZLES)


def outputs(directory):
    names = ["metrics.parquet", "rollouts.parquet", "checkpoints/step2/model.safetensors"]
    return [(directory / name).read_bytes() for name in names]


@pytest.mark.parametrize("arm", [FROZEN, AVERAGE, SAMPLED], ids=["frozen", "average", "prefix value"])
def test_an_interrupted_run_resumes_to_the_same_bytes(checkpoint, tmp_path, arm):
    whole = run(checkpoint, [1, 2], arm)
    train_rl(whole, tmp_path / "state-a", {}, tmp_path / "a").finish()

    killed = RLTrainer(whole)
    settings = {**whole.job.model_dump(mode="json", exclude={"steps"})}
    identity = {"settings": settings, "seed": 3, "learning_rate": 1e-3}
    states = StateDirectory(tmp_path / "state-b", identity, goal=[1, 2])
    killed.step(1)
    killed.keep(states, [1, 2])
    del killed
    train_rl(whole, tmp_path / "state-b", {}, tmp_path / "b")
    assert outputs(tmp_path / "a") == outputs(tmp_path / "b")

    metrics = pd.read_parquet(tmp_path / "a/metrics.parquet")
    assert metrics.step.tolist() == [1, 2]
    assert metrics.max_log_ratio.fillna(0).max() < 1e-4
    assert metrics.lag.tolist() == [0, 0]
    timings = pd.read_parquet(tmp_path / "a/timings.parquet")
    assert set(timings.phase) == {"generate", "score", "train", "push"}


def test_a_server_killed_in_the_middle_of_a_batch_fails_the_job_and_a_rerun_resumes(checkpoint, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr(contrastive_potential, "answer_bank", lambda *_: BANK)
    batches = []

    def killing_post(client, path, fields):
        """The engine stops while it works on the second step's batch, and is killed before it can answer."""
        if path == SCORE_PATH:
            batches.append(fields)
            if len(batches) == 2:
                server = [p for p in psutil.Process().children(recursive=True) if "api_server" in " ".join(p.cmdline())]
                processes = [p for parent in server for p in (*parent.children(recursive=True), parent)]
                for process in processes:
                    process.suspend()
                for process in processes:
                    threading.Timer(0.5, process.send_signal, [signal.SIGKILL]).start()
        return post(client, path, fields)

    post = HttpClient.post
    whole = run(checkpoint, [1, 2], CACHED)
    with monkeypatch.context() as patch:
        patch.setattr(HttpClient, "post", killing_post)
        with pytest.raises(ServerError, match="the scorer server ended with status"):
            train_rl(whole, tmp_path / "state", {}, tmp_path / "out")
    assert not (tmp_path / "out/metrics.parquet").exists()
    assert not [p for p in psutil.Process().children(recursive=True) if "api_server" in " ".join(p.cmdline())]

    train_rl(whole, tmp_path / "state", {}, tmp_path / "out")
    metrics = pd.read_parquet(tmp_path / "out/metrics.parquet")
    assert metrics.step.tolist() == [1, 2]
    assert (metrics.scorings > 0).all()
    assert len(batches) == 2  # the rerun was not watched: its batch is the second step's alone
    timings = pd.read_parquet(tmp_path / "out/timings.parquet")
    assert timings.query("phase == 'score'").step.tolist() == [1, 2]
