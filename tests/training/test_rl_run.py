"""RL with the real vLLM on a tiny model: the same bytes whether or not the run was interrupted."""

import pandas as pd
import pytest

from stepcredit.config import ArmSettings, ModelSettings, RLSettings, SamplerSettings, ScorerSettings
from stepcredit.countdown.puzzle import Puzzle
from stepcredit.jobs import RLJob
from stepcredit.modeling.model import build_model, save_model
from stepcredit.modeling.tokenizer import TextCodec, build_tokenizer
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
    timings = pd.read_parquet(tmp_path / "a/timings.parquet")
    assert set(timings.phase) == {"generate", "score", "train", "push"}
