"""The numbers of the scoring study, by hand, from the made-up files of `fabricate`."""

import numpy as np
import pandas as pd
import pytest
from fabricate import build

from stepcredit.reporting.accessor import Tables
from stepcredit.reporting.scoring_limits import limit, parts, server_cost


@pytest.fixture(scope="module")
def tables(finished_run):
    return Tables(finished_run / "tables")


def test_a_scorer_is_told_by_its_medians_and_its_largest_difference(tables):
    row = tables.row("scoring", model="run", scorer="naive")
    assert row["wall_s"] == 24.0
    assert (row["requests"], row["bytes"], row["tokens_computed"], row["tokens_minimum"]) == (400, 20e6, 60e3, 5e3)
    assert row["max_abs_difference"] == pytest.approx(3e-6)  # of the third repetition
    assert tables.row("scoring", model="run", scorer="tree")["max_abs_difference"] == 0
    assert not tables.rows("scoring", scorer="plain")


def test_the_workload_and_the_spread_of_its_repetitions_are_kept(tables):
    row = tables.row("scoring_repetitions", model="large", scorer="cached")
    assert (row["scorings"], row["unique"], row["repetitions"]) == (400, 350, 3)
    assert (row["wall_low"], row["wall_high"]) == pytest.approx((0.9 * 0.9 * 3, 0.9 * 1.2 * 3))


def test_reruns_of_a_scorer_are_compared_with_each_other_and_with_other_scorers(tables):
    def row(first, second):
        return tables.row("scoring_agreement", model="run", first=first, second=second)

    assert row("naive", "naive")["pairs"] == 3
    assert row("naive", "naive")["max_abs_difference"] == pytest.approx(2e-6)
    assert row("naive", "batched")["pairs"] == 9
    assert row("naive", "tree")["max_abs_difference"] == pytest.approx(3e-6)


def test_steps_are_medians_of_whole_steps(tables):
    total = tables.row("scoring_steps", model="frozen", scorer="naive", phase="total")
    assert total["seconds_per_step"] == pytest.approx(0.5 + 6 + 0.4 + 0.01)
    assert total["steps"] == 3
    assert not tables.rows("scoring_steps", model="frozen", scorer="engine")


def test_a_whole_run_is_the_baselines_with_the_scoring_of_its_size_added(tables):
    row = tables.row("scoring_projection", model="frozen", scorer="naive")
    baseline = tables.row("elapsed", arm="baseline", step=40)["seconds"]
    assert row["seconds_per_scoring"] == pytest.approx(0.06)
    assert row["scorings_per_step"] == 400
    assert row["minutes"] == pytest.approx((baseline + 40 * 24) / 60, rel=1e-4)
    assert row["mean"] == pytest.approx(1 + 40 * 24 / baseline, rel=1e-4)
    assert row["low"] == row["mean"] == row["high"]


def test_a_server_costs_what_batched_and_cached_differ_by():
    rows = {
        "batched": {"tokens_computed": 50_000, "wall_s": 6.0},
        "cached": {"tokens_computed": 10_000, "wall_s": 2.0},
    }
    cost = server_cost(rows, scorings=200)
    assert cost.token == pytest.approx(1e-4)
    assert cost.scoring == pytest.approx(0.005)
    assert server_cost({"cached": rows["cached"]}, 200) is None
    assert server_cost({"batched": rows["cached"], "cached": rows["batched"]}, 200) is None


def test_each_scorer_is_limited_by_what_takes_most_of_its_time():
    rows = {
        "naive": {"wall_s": 40.0, "tokens_computed": 60_000, "requests": 300, "bytes": 5e6},
        "batched": {"wall_s": 6.0, "tokens_computed": 50_000, "requests": 1, "bytes": 9e3},
        "cached": {"wall_s": 2.0, "tokens_computed": 10_000, "requests": 1, "bytes": 9e3},
        "tree": {"wall_s": 3.0, "tokens_computed": 5_000, "requests": 0, "bytes": 0},
    }
    rows = {
        name: row | {"scorer": name, "tokens_minimum": 5_000, "tokens_minimum_blocks": 9_000}
        for name, row in rows.items()
    }
    cost = server_cost(rows, 200)
    assert sum(parts(rows["naive"], cost, 200).values()) == pytest.approx(40)
    assert "an HTTP request and an answer for each scoring (300, 5.0 MB): 82 %" in limit(rows["naive"], cost, 200)
    assert "prefixes that are computed again: 75 %" in limit(rows["batched"], cost, 200)
    assert "the engine's work for each scoring, whatever its length: 50 %" in limit(rows["cached"], cost, 200)
    assert "(no cache of whole blocks gets below 1.80\u00a0×)" in limit(rows["cached"], cost, 200)
    assert "dense attention, not the tokens themselves: 83 %" in limit(rows["tree"], cost, 200)
    assert "cannot be told" in limit(rows["tree"], None, 200)


def test_claims_about_the_cost_of_scoring_are_judged(finished_run):
    import json

    claims = {claim["id"]: claim for claim in json.loads((finished_run / "claims.json").read_text())["claims"]}
    assert claims[13]["verdict"] == "reproduced"
    assert claims[14]["verdict"] == "reproduced"
    assert claims[15]["verdict"] == "contradicted"
    assert claims[16]["verdict"] == "reproduced"  # 2e-6 between them and between two runs of either
    assert claims[16]["ours"] == pytest.approx(1.0)


def test_a_run_without_anything_to_score_has_a_report_that_says_so(raw_run):
    root, config = raw_run
    for model in ("run", "large"):
        frame = pd.read_parquet(root / f"scoring/{model}.parquet")
        frame.iloc[:0].to_parquet(root / f"scoring/{model}.parquet", index=False)
    steps = pd.read_parquet(root / "scoring/steps.parquet")
    steps.assign(scorings=np.where(steps["model"] == "none", np.nan, 0)).to_parquet(root / "scoring/steps.parquet")
    build(root, config)
    assert "there was nothing to score" in (root / "report.html").read_text()
