"""Handing metrics to a tracker: every number arrives, an export can be repeated, and nothing is needed to train."""

import sys

import pandas as pd
import pytest

from stepcredit.cli.tracking import track
from stepcredit.provenance.errors import UserError
from stepcredit.provenance.record import record
from stepcredit.reporting.tracking import to_tensorboard, to_wandb, tracked_runs

RUN = "rl/frozen/seed1"


@pytest.fixture
def results(tmp_path):
    """Two finished runs, one in a state directory, and one of results that are nested here."""
    shaping = [0.25, None, 0.5]
    frames = {
        "sft": pd.DataFrame({"step": [1, 2], "loss": [2.0, 1.0]}),
        RUN: pd.DataFrame({"step": [1, 2, 3], "reward": [0.5, 0.25, 0.75], "shaping_mean": shaping}),
        "state/sft": pd.DataFrame({"step": [1], "loss": [9.0]}),
        "smoke/sft": pd.DataFrame({"step": [1], "loss": [9.0]}),
    }
    root = tmp_path / "results"
    for name, frame in frames.items():
        (root / name).mkdir(parents=True)
        frame.to_parquet(root / name / "metrics.parquet", index=False)
        with record("train", root / name / "manifest.json", modules=["seeds"], settings={"rl": {"loss": "sc"}}, seed=1):
            pass
    (root / "smoke/config.yaml").touch()
    return root


def test_a_run_has_its_settings_its_seed_and_what_was_measured(results):
    runs = {run.name: run for run in tracked_runs(results)}
    assert runs.keys() == {"sft", RUN}
    assert runs[RUN].steps == {
        1: {"reward": 0.5, "shaping_mean": 0.25},
        2: {"reward": 0.25},
        3: {"reward": 0.75, "shaping_mean": 0.5},
    }
    assert (runs[RUN].seed, runs[RUN].settings) == (1, {"rl": {"loss": "sc"}})


def test_the_id_of_a_run_follows_its_metrics(results):
    before = {run.name: run.identity for run in tracked_runs(results)}
    pd.DataFrame({"step": [1], "loss": [3.0]}).to_parquet(results / "sft/metrics.parquet", index=False)
    after = {run.name: run.identity for run in tracked_runs(results)}
    assert after["sft"] != before["sft"]
    assert after[RUN] == before[RUN]


def test_results_without_a_run_are_told_so(tmp_path):
    with pytest.raises(UserError, match=r"holds no metrics\.parquet"):
        list(tracked_runs(tmp_path))


@pytest.mark.parametrize(
    ("package", "start"),
    [
        ("torch.utils.tensorboard", lambda directory: to_tensorboard(directory)),
        ("wandb", lambda directory: to_wandb("project", directory, offline=True)),
    ],
    ids=["tensorboard", "wandb"],
)
def test_a_tracker_that_is_not_installed_is_named(monkeypatch, tmp_path, package, start):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UserError, match=r"not installed: pip install (tensorboard|wandb)"):
        start(tmp_path)


def test_a_call_without_a_tracker_says_which_there_are(results):
    with pytest.raises(UserError, match="--tensorboard DIR, --wandb PROJECT"):
        track(results)


def test_tensorboard_reads_each_number_once_however_often_it_is_exported(results, tmp_path):
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="the extra `tracking` is not installed"
    )
    for _ in range(2):
        track(results, tensorboard=tmp_path / "events")
    (tmp_path / "events/sft/events.of.another").touch()
    events = accumulator.EventAccumulator(str(tmp_path / "events" / RUN)).Reload()
    assert sorted(events.Tags()["scalars"]) == ["reward", "shaping_mean"]
    assert [(event.step, event.value) for event in events.Scalars("reward")] == [(1, 0.5), (2, 0.25), (3, 0.75)]
    assert [event.step for event in events.Scalars("shaping_mean")] == [1, 3]
    assert len(list((tmp_path / "events/sft").glob("*.stepcredit"))) == 1


def test_wandb_offline_keeps_a_run_for_each_of_ours(results, tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason="the extra `tracking` is not installed")
    monkeypatch.setenv("WANDB_SILENT", "true")
    track(results, wandb="test", wandb_dir=tmp_path / "runs", offline=True)
    ids = {run.identity for run in tracked_runs(results)}
    kept = list((tmp_path / "runs/wandb").glob("offline-run-*"))
    assert {directory.name.rpartition("-")[2] for directory in kept} == ids
    (logged,) = [
        file for directory in kept for file in directory.glob("*.wandb") if b"shaping_mean" in file.read_bytes()
    ]
    assert logged.stat().st_size > 0
