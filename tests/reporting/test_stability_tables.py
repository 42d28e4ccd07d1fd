"""The mismatch experiment in tables and claims, against numbers worked by hand."""

import json
import shutil

import pandas as pd
import pytest
from fabricate import PUBLISHED
from test_tables import answer_puzzles, tables_of

from stepcredit.reporting.claims import write_claims
from stepcredit.reporting.csvfiles import read_rows, write_rows

SAMPLES = 2


def answer(root, mismatch, method, rewards, right, seeds=(0, 1)):
    for seed in seeds:
        file = root / f"stability/runs/{mismatch}/{method}/{rewards}/seed{seed}/evaluation.parquet"
        answer_puzzles(file, right)


@pytest.fixture
def known(raw_run):
    """Where the SFT model and the runs under an exact sampler have half of the samples right, at every puzzle."""
    root, config = raw_run
    answer_puzzles(root / "stability/drift/start.parquet", lambda puzzle: 1)
    for rewards in ("raw", "group_centred"):
        answer(root, "exact", "reinforce", rewards, lambda puzzle: 1)
    return root, config


def test_a_run_that_loses_everything_has_collapsed_and_one_that_ends_where_it_started_has_not(known):
    root, config = known
    answer(root, "int4", "reinforce", "raw", lambda puzzle: 0)
    answer(root, "int4", "sc", "raw", lambda puzzle: 1)
    tables = tables_of(root, config)
    gone = tables.row("stability", mismatch="int4", method="reinforce", rewards="raw")
    kept = tables.row("stability", mismatch="int4", method="sc", rewards="raw")
    assert (gone["mean"], gone["collapsed"]) == (0, True)
    assert (kept["mean"], kept["low"], kept["high"], kept["collapsed"]) == (0.5, 0.5, 0.5, False)
    pair = {"mismatch": "int4", "method": "reinforce", "rewards": "raw"}
    for other in ("start", "reference", "sc"):
        assert tables.interval("stability_pairs", other=other, **pair).mean == -0.5


def test_all_positive_rewards_are_compared_by_what_the_mismatch_costs_each(known):
    root, config = known
    # raw falls from 1/2 to 0, centred from 1 to 1/2: the mismatch costs both the same
    answer(root, "exact", "reinforce", "group_centred", lambda puzzle: 2)
    answer(root, "int4", "reinforce", "raw", lambda puzzle: 0)
    answer(root, "int4", "reinforce", "group_centred", lambda puzzle: 1)
    tables = tables_of(root, config)
    pair = {"mismatch": "int4", "method": "reinforce", "rewards": "raw"}
    assert tables.interval("stability_pairs", other="group_centred", **pair).mean == 0


def test_mean_ratio_and_drift_are_over_all_steps_and_seeds(known):
    root, config = known
    for seed, values in ((0, [1.0, 2.0]), (1, [3.0, 4.0])):
        file = root / f"stability/runs/int4/sc/raw/seed{seed}/metrics.parquet"
        frame = pd.read_parquet(file).iloc[:2]
        frame["mean_ratio"] = values
        frame.to_parquet(file, index=False)
    tables = tables_of(root, config)
    where = {"mismatch": "int4", "method": "sc", "rewards": "raw"}
    assert tables.row("stability", **where)["mean_ratio"] == 2.5
    second = tables.row("stability_curve", metric="mean_ratio", step=2, **where)
    assert (second["mean"], second["low"], second["high"], second["seeds"]) == (3, 2, 4, 2)


def test_drift_is_given_as_a_share_of_the_total_variation(known):
    tables = tables_of(*known)
    where = {"mismatch": "int4", "head": 32}
    assert tables.interval("drift", method="tis", metric="share", **where).mean == pytest.approx(0.4)
    assert tables.interval("drift", method="reinforce", metric="off_difference", **where).mean == 0
    assert tables.row("stability_mismatches", mismatch="stale")["total_variation"] is None


def test_costs_are_shares_of_a_step_of_the_plain_policy_gradient(known):
    root, config = known
    file = root / "stability/cost/cost.parquet"
    frame = pd.read_parquet(file)
    seconds = {"none": 3.0, "top 32": 3.2, "8 draws": 3.1, "reinforce": 1.0, "sc": 1.04, "sc_sampled": 1, "tis_sc": 1}
    frame["cpu_seconds"] = frame.variant.map(seconds).astype(float)
    frame.to_parquet(file, index=False)
    tables = tables_of(root, config)
    parts = {row["part"]: row["mean"] for row in tables.rows("stability_cost", method="sc")}
    assert parts == pytest.approx({"sampler": 0.05, "trainer": 0.01, "step": 0.06})
    assert tables.row("sampler_cost", variant="top 32")["bytes_per_token"] == 384


def judged(tables, claim):
    out = tables / "claims.json"
    write_claims(tables, PUBLISHED, out)
    return {record["id"]: record for record in json.loads(out.read_text())["claims"]}[claim]


def change(tables, name, where, **values):
    rows = read_rows(tables / f"{name}.csv")
    for row in rows:
        if all(row[key] == value for key, value in where.items()):
            row.update(values)
    write_rows(tables / f"{name}.csv", list(rows[0]), rows)


LOW = {"mean": -0.3, "low": -0.4, "high": -0.2}
HIGH = {"mean": 0.3, "low": 0.2, "high": 0.4}
NEAR = {"mean": 0.0, "low": -0.01, "high": 0.01}
INT4, INT8, STALE = ({"mismatch": name, "rewards": "raw"} for name in ("int4", "int8", "stale"))
SC_DRIFT = {"mismatch": "int8", "method": "sc", "head": 32, "metric": "share"}


@pytest.mark.parametrize(
    ("claim", "table", "where", "values", "verdict"),
    [
        (18, "drift", {"mismatch": "int4", "method": "reinforce", "metric": "off_difference"}, HIGH, "contradicted"),
        (18, "drift", {}, {}, "reproduced"),
        (19, "drift", SC_DRIFT, HIGH, "contradicted"),
        (19, "drift", SC_DRIFT, NEAR, "reproduced"),
        (20, "drift", {"mismatch": "int4", "method": "tis", "metric": "share"}, NEAR, "inconclusive"),
        (20, "drift", {}, {}, "reproduced"),
        (21, "stability_pairs", {**INT8, "other": "reinforce"}, NEAR, "reproduced"),
        (21, "stability_pairs", {**INT8, "other": "reinforce"}, HIGH, "contradicted"),
        (22, "stability_pairs", {**INT4, "method": "sc", "other": "reference"}, LOW, "contradicted"),
        (22, "stability_pairs", {**INT4, "method": "tis", "other": "sc"}, HIGH, "contradicted"),
        (23, "stability_pairs", {**STALE, "method": "tis_sc", "other": "sc"}, HIGH, "reproduced"),
        (23, "stability_pairs", {**STALE, "method": "tis_sc", "other": "sc"}, LOW, "contradicted"),
        (24, "stability_pairs", {**INT4, "method": "reinforce", "other": "group_centred"}, LOW, "reproduced"),
        (24, "stability_pairs", {**INT4, "method": "reinforce", "other": "group_centred"}, HIGH, "contradicted"),
        (25, "stability_cost", {"method": "sc", "part": "step"}, {"mean": 0.0, "low": 0, "high": 0.009}, "reproduced"),
        (25, "stability_cost", {"method": "sc", "part": "step"}, HIGH, "contradicted"),
        (26, "drift", {"mismatch": "int4", "method": "sc", "head": 32, "metric": "share"}, HIGH, "contradicted"),
        (26, "drift", {}, {}, "reproduced"),
        (27, "fingerprint", {"loss": "sc_sampled"}, {"outside": 3}, "contradicted"),
        (27, "fingerprint", {}, {}, "reproduced"),
    ],
)
def test_each_claim_follows_from_its_rows(finished_run, tmp_path, claim, table, where, values, verdict):
    tables = tmp_path / "tables"
    shutil.copytree(finished_run / "tables", tables)
    change(tables, table, where, **values)
    assert judged(tables, claim)["verdict"] == verdict


def test_severe_quantisation_is_reproduced_where_centering_holds_and_all_others_fall(finished_run, tmp_path):
    tables = tmp_path / "tables"
    shutil.copytree(finished_run / "tables", tables)
    for method in ("sc", "tis_sc"):
        change(tables, "stability_pairs", {**INT4, "method": method, "other": "reference"}, **NEAR)
    for method in ("reinforce", "tis"):
        change(tables, "stability_pairs", {**INT4, "method": method, "other": "sc"}, **LOW)
    assert judged(tables, 22)["verdict"] == "reproduced"


def test_without_a_mild_or_a_stale_or_a_severe_mismatch_the_claim_is_not_run(finished_run, tmp_path):
    tables = tmp_path / "tables"
    shutil.copytree(finished_run / "tables", tables)
    change(tables, "stability_mismatches", {"mismatch": "int8"}, total_variation=0.02)
    change(tables, "stability_mismatches", {"mismatch": "stale"}, refresh_every=1)
    assert judged(tables, 21)["verdict"] == "not run"
    assert judged(tables, 23)["verdict"] == "not run"
    for name in ("int8", "int4"):
        change(tables, "stability_mismatches", {"mismatch": name}, total_variation=0.0001)
    record = judged(tables, 22)
    assert record["verdict"] == "not run"
    assert "extended.yaml" in record["command"]
