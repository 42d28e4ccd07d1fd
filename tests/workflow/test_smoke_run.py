"""The smoke run from puzzles to report, with the real vLLM, and what a second run does."""

import csv
import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from smoke_dag import ROOT, planned, prepare, snakemake

from stepcredit.countdown.puzzle import Puzzle
from stepcredit.countdown.verifier import grade
from stepcredit.credit.contrastive_potential import contrastive_potential
from stepcredit.reporting.names import FIGURES, TABLES, TIMING_TABLES

pytestmark = pytest.mark.workflow


def rows(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_every_table_and_figure_is_there(smoke):
    results = smoke / "results/smoke"
    assert sorted(p.stem for p in (results / "tables").glob("*.csv")) == sorted([*TABLES, *TIMING_TABLES])
    assert sorted(p.stem for p in (results / "figures").glob("*.svg")) == sorted(FIGURES)


def test_the_funnel_loses_no_row(smoke):
    funnel = {row["stage"]: int(row["rows"]) for row in rows(smoke / "results/smoke/tables/funnel.csv")}
    assert funnel["read"] == 3000
    assert sum(funnel.values()) == 2 * funnel["read"]
    assert all(count > 0 for stage, count in funnel.items() if stage in ("read", "kept"))


def test_the_splits_are_disjoint_up_to_the_order_of_the_numbers(smoke):
    splits = smoke / "results/smoke/data/splits"
    keys = {
        name: {
            Puzzle(tuple(n), t).key for n, t in pd.read_parquet(splits / f"{name}.parquet")[["nums", "target"]].values
        }
        for name in ("demonstrations", "rl", "validation", "heldout")
    }
    names = list(keys)
    for index, first in enumerate(names):
        for second in names[index + 1 :]:
            assert not keys[first] & keys[second], (first, second)


def test_evaluated_rewards_are_what_the_verifier_says(smoke):
    table = pd.read_parquet(smoke / "results/smoke/eval/sft/step0.parquet")
    assert len(table) == 32 * 2
    finished = table[table.finished]
    regraded = [
        grade(text, Puzzle(tuple(nums), target)).reward
        for text, nums, target in zip(finished.completion, finished.nums, finished.target, strict=True)
    ]
    assert regraded == finished.reward.tolist()
    assert (table[~table.finished].reward == 0).all()


def test_pass_at_1_in_the_arms_table_is_the_mean_reward_of_the_rollouts(smoke):
    results = smoke / "results/smoke"
    table = {(r["arm"], r["step"], r["metric"]): float(r["mean"]) for r in rows(results / "tables/arms.csv")}
    assert list(rows(results / "tables/arms.csv")[0]) == [
        "arm",
        "step",
        "metric",
        "mean",
        "low",
        "high",
        "seeds",
    ]
    for arm, seeds in (("baseline", (0, 1)), ("frozen", (0,)), ("moving", (0,))):
        rewards = pd.concat(pd.read_parquet(results / f"eval/{arm}/seed{seed}/step2.parquet").reward for seed in seeds)
        assert table[arm, "2", "pass@1"] == pytest.approx(rewards.mean(), abs=1e-6)


def test_sampler_and_trainer_agree_in_every_step(smoke):
    for metrics in sorted((smoke / "results/smoke/rl").glob("*/seed*/metrics.parquet")):
        table = pd.read_parquet(metrics)
        assert table.max_log_ratio.dropna().max() < 1e-4, metrics


def test_a_wrong_sampler_shows_in_its_runs_and_the_reference_has_none(smoke):
    runs = smoke / "results/smoke/stability/runs"
    exact = pd.read_parquet(runs / "exact/reinforce/raw/seed0/metrics.parquet")
    wrong = [pd.read_parquet(runs / f"int4/{method}/raw/seed0/metrics.parquet") for method in ("reinforce", "sc")]
    assert exact.total_variation.dropna().max() < 1e-4
    for metrics in wrong:
        assert metrics.total_variation.dropna().min() > 1e-4


def test_drift_is_zero_on_policy_and_once_centered_on_the_model_of_the_run(smoke):
    drift = pd.read_parquet(smoke / "results/smoke/stability/drift/drift.parquet")
    assert (drift[drift.mismatch == "exact"].drift < 1e-4).all()
    int4 = drift[drift.mismatch == "int4"]
    assert (int4[int4.method == "reinforce"].off_difference < 1e-6).all()
    assert (int4[(int4.method == "sc") & int4.full].drift < 1e-6).all()


def test_the_playground_is_in_the_report_once(smoke):
    page = (smoke / "results/smoke/report.html").read_text()
    assert page.count('id="playground-root"') == 1


def test_arms_with_one_seed_start_from_the_same_rollouts(smoke):
    first = [
        pd.read_parquet(smoke / f"results/smoke/rl/{arm}/seed0/rollouts.parquet").query("step == 1").completion.tolist()
        for arm in ("baseline", "frozen", "moving")
    ]
    assert first[0] == first[1] == first[2]


def test_the_potential_of_a_kept_rollout_is_that_of_the_likelihoods_beside_it(smoke):
    compared = 0
    for arm in ("frozen", "moving", "no_guard"):
        runs = sorted((smoke / f"results/smoke/rl/{arm}").glob("seed*/rollouts.parquet"))
        table = pd.concat(map(pd.read_parquet, runs))
        for row in table[table.likelihoods.notna()].itertuples():
            counts = np.array([answer["count"] for answer in row.bank])
            right = np.array([answer["correct"] for answer in row.bank])
            scores = np.stack(row.likelihoods)
            sides = [np.repeat(scores[:, side], counts[side], axis=1) for side in (right, ~right)]
            told = [row.paragraphs[0]["potential_before"], *(p["potential_after"] for p in row.paragraphs)]
            assert contrastive_potential(*sides).tolist() == pytest.approx(told, abs=1e-9)
            compared += 1
    assert compared > 0


def test_success_rates_are_sampled_at_boundaries_with_a_potential(smoke):
    for name in ("sft/step0", "baseline/seed0/step2"):
        table = pd.read_parquet(smoke / f"results/smoke/signal/{name}.parquet")
        assert (table.successes <= table.finished).all()
        assert (table[["finished", "answers_right"]].max(axis=1) <= table.continuations).all()
        assert (table.boundary < table.boundaries).all()
        assert table.potential_frozen.abs().max() <= 5
        if name == "sft/step0":
            assert table.potential_frozen.equals(table.potential_moving)


def test_the_report_opens_offline_and_holds_the_numbers_of_the_tables(smoke):
    results = smoke / "results/smoke"
    page = (results / "report.html").read_text()
    assert len(page) < 5_000_000
    assert not re.search(r"""(src|href)=["']https?://""", page)
    for name in FIGURES:
        assert (results / f"figures/{name}.svg").stat().st_size > 500
    claims = json.loads((results / "claims.json").read_text())
    assert {claim["verdict"] for claim in claims["claims"]} <= {
        "reproduced",
        "contradicted",
        "inconclusive",
        "not run",
    }


def test_the_audit_finds_nothing_wrong(smoke):
    command = [sys.executable, "-m", "stepcredit.cli", "audit", "results/smoke"]
    done = subprocess.run(command, cwd=smoke, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_models_are_laid_out_without_training_and_pass_the_audit(smoke):
    assert planned(smoke, "model_cards").keys() <= {"model_cards"}
    done = snakemake(smoke, "model_cards")
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    assert planned(smoke, "model_cards") == {}
    assert planned(smoke) == {}
    assert (smoke / "results/smoke/models/baseline-seed1/README.md").is_file()
    test_the_audit_finds_nothing_wrong(smoke)


def test_a_second_run_has_nothing_to_do(smoke):
    assert planned(smoke) == {}


def test_forcing_one_seed_reruns_that_seed_and_what_depends_on_it(smoke):
    jobs = planned(smoke, "--forcerun", "results/smoke/rl/baseline/seed1/metrics.parquet")
    assert jobs == {
        "train_rl": 1,
        "evaluate": 1,
        "tables": 1,
        "claims": 1,
        "figures": 1,
        "report": 1,
        "all": 1,
    }


def test_a_new_title_remakes_the_report_alone(smoke):
    assert planned(smoke, "--config", 'report={"title": "Another"}') == {"report": 1, "all": 1}


def test_a_longer_evaluation_continues_the_runs_and_evaluates_the_new_step(smoke):
    jobs = planned(smoke, "--config", 'evaluation={"steps": [0, 2, 3]}')
    assert jobs["evaluate"] >= 5
    assert "train_sft" not in jobs
    assert "sweep_learning_rate" not in jobs


def test_one_arm_seed_and_step_plans_just_what_it_needs(tmp_path):
    jobs = planned(prepare(tmp_path), "results/smoke/eval/baseline/seed1/step2.parquet")
    assert jobs["train_rl"] == 1
    assert jobs["evaluate"] == 1
    assert not {"tables", "report", "evaluate_sft"} & jobs.keys()


def test_two_runs_from_scratch_give_the_same_bytes(smoke, tmp_path):
    """From nothing to what each kind of stage writes; that tables follow from it is the audit's to show."""
    again = prepare(tmp_path / "again")
    arms = ("baseline", "frozen", "moving")
    targets = [
        *(f"results/smoke/eval/{arm}/seed0/step2.parquet" for arm in arms),
        "results/smoke/eval/sft/step0.parquet",
        "results/smoke/signal/sft/step0.parquet",
        "results/smoke/stability/runs/int4/sc/raw/seed0/metrics.parquet",
    ]
    done = snakemake(again, *targets)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    ours, theirs = smoke / "results/smoke", again / "results/smoke"
    names = [
        path.relative_to(theirs)
        for path in sorted(theirs.rglob("*"))
        if path.suffix in (".parquet", ".safetensors") and path.stem != "timings" and "state" not in path.parts
    ]
    kinds = {"data", "sft", "sweep", "rl", "eval", "signal", "stability"}
    assert {name.parts[0] for name in names} == kinds
    different = [str(name) for name in names if (ours / name).read_bytes() != (theirs / name).read_bytes()]
    assert different == []


def test_snakemake_writes_its_own_report_with_captions(smoke, tmp_path):
    target = tmp_path / "snakemake-report.html"
    done = snakemake(smoke, "--report", str(target))
    assert done.returncode == 0, done.stdout + done.stderr
    page = target.read_text()
    captions = (ROOT / "report/captions").glob("*.rst")
    assert "Figures" in page
    assert any(caption.read_text().strip()[:60] in page for caption in captions)


def test_a_killed_run_continues(smoke, tmp_path):
    """Losing an arm's outputs and resuming from its state gives the bytes of the uninterrupted run."""
    copy = tmp_path / "copy"
    shutil.copytree(smoke, copy, symlinks=True)
    seed = copy / "results/smoke/rl/frozen/seed0"
    before = (seed / "checkpoints/step2/model.safetensors").read_bytes()
    shutil.rmtree(seed)
    (copy / "results/smoke/state/rl/frozen/seed0/finished.json").unlink()
    done = snakemake(copy, "results/smoke/rl/frozen/seed0/manifest.json")
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    assert (seed / "checkpoints/step2/model.safetensors").read_bytes() == before
