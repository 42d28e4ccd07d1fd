"""The mismatch experiment with the real vLLM on a tiny model."""

import pandas as pd
import pytest

from stepcredit.config import Config
from stepcredit.countdown.puzzle import Puzzle
from stepcredit.jobs import drift_job, mismatch_cost_job, stability_job
from stepcredit.losses import LOSSES
from stepcredit.modeling.model import build_model, save_model
from stepcredit.modeling.tokenizer import TextCodec, build_tokenizer
from stepcredit.settings.model import ModelSettings
from stepcredit.studies.mismatch_cost import measure_cost
from stepcredit.studies.model_drift import measure_drift
from stepcredit.studies.stability import StabilityRun, train_under_mismatch

SMALL = ModelSettings(
    hidden_size=32, layers=2, intermediate_size=64, attention_heads=2, key_value_heads=1, head_dim=32, max_positions=64
)
CONFIG = Config(
    arms={"baseline": {"label": "baseline", "credit": "group_advantage"}},
    rl={
        "prompts_per_step": 2,
        "rollouts_per_prompt": 2,
        "max_new_tokens": 16,
        "temperature": 0.3,
        "warmup_steps": 0,
        "head_size": 16,
        "filter_zero_advantages": False,
    },
    evaluation={"max_new_tokens": 16},
    sampler={"max_model_len": 64, "max_concurrent": 8, "kv_cache_mib": 16},
    stability={
        "methods": [{"name": "dppo_kl"}, {"name": "sc_sampled"}],
        "mismatches": [
            {"name": "int4", "label": "INT4", "weights": "int4", "embedding": True},
            {"name": "stale", "label": "stale", "refresh_every": 2},
            {"name": "kv", "label": "FP8 cache", "kv_cache": "fp8_e5m2"},
        ],
        "steps": 4,
        "puzzles": 3,
        "head_sizes": [4],
        "drift_rollouts": 2,
        "cost_repeats": 2,
    },
)
PUZZLES = [Puzzle((3, 5, 2), 16), Puzzle((4, 6, 2), 12), Puzzle((7, 8, 9), 24), Puzzle((1, 2, 3), 9)]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    directory = tmp_path_factory.mktemp("sft") / "model"
    codec = TextCodec(build_tokenizer(30))
    save_model(build_model(SMALL, codec, seed=0), codec, directory)
    return directory


def train(checkpoint, mismatch, method):
    job = stability_job(CONFIG, mismatch, method, "raw")
    return train_under_mismatch(StabilityRun(job, 0, 1e-2, checkpoint, PUZZLES, PUZZLES))


def test_a_stale_sampler_is_exact_after_each_push_and_wrong_before_the_next(checkpoint):
    log = train(checkpoint, "stale", "dppo_kl")
    metrics = pd.DataFrame(log.metrics)
    assert metrics.step.tolist() == [1, 2, 3, 4]
    assert (metrics.max_log_ratio[[0, 2]] < 1e-3).all()  # refreshed before the steps 1 and 3
    assert len(log.evaluation) == 3 * 2
    assert {row["phase"] for row in log.timings} == {"generate", "score", "train", "push"}


def test_rounded_weights_show_in_ratio_and_drift_and_sampled_centering_drifts_nowhere(checkpoint):
    metrics = pd.DataFrame(train(checkpoint, "int4", "sc_sampled").metrics)
    assert (metrics.max_log_ratio > 1e-2).all()
    assert (metrics.total_variation > 1e-3).all()
    assert (metrics.drift < 1e-6).all()


def test_drift_on_the_model_is_q_minus_p_for_the_plain_gradient_and_nothing_once_centered(checkpoint):
    log = measure_drift(drift_job(CONFIG), checkpoint, PUZZLES, PUZZLES)
    rows = pd.DataFrame(log.drift)
    assert set(rows.mismatch) == {"exact", "int4", "kv"}  # staleness takes training
    assert set(rows.method) == LOSSES.keys()
    assert (rows[rows.mismatch == "exact"].drift < 1e-4).all()
    int4 = rows[rows.mismatch == "int4"]
    plain = int4[int4.method == "reinforce"]
    assert (plain.off_difference < 1e-6).all()
    assert (plain.drift > 1e-3).all()
    assert (int4[(int4.method == "sc") & int4.full].drift < 1e-6).all()
    assert (int4[int4.method == "sc_sampled"].drift < 1e-6).all()
    small, large = (int4[(int4.method == "sc") & (int4["head"] == size)].drift.mean() for size in (4, 16))
    assert small > large > 0
    assert (rows[(rows.mismatch == "kv") & (rows.method == "reinforce")].drift > 0).any()
    assert len(log.start) == 3 * 2


def test_costs_are_measured_for_every_record_and_every_loss(checkpoint):
    rows = pd.DataFrame(measure_cost(mismatch_cost_job(CONFIG), checkpoint, PUZZLES))
    sampler = rows[rows.part == "sampler"]
    assert set(sampler.variant) >= {"none", "top 8", "top 16", "8 draws"}
    assert (sampler.groupby("variant").tokens.nunique() == 1).all()
    per_token = (sampler.bytes / sampler.tokens).groupby(sampler.variant).first()
    assert per_token["none"] == 0
    assert per_token["top 16"] == 16 * 12  # an int64 and a float32 each
    assert per_token["8 draws"] == 8 * 12
    assert set(rows[rows.part == "trainer"].variant) == {"reinforce", "sc", "sc_sampled", "tis_sc"}
    assert (rows.cpu_seconds > 0).all()
    assert set(rows.repeat) == {0, 1}
