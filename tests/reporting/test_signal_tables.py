"""Tables of the signal, of the guard and of the token cap, and arms with fewer seeds or steps than the others."""

import numpy as np
import pandas as pd
import pytest
from fabricate import fabricate

from stepcredit.reporting.accessor import Tables
from stepcredit.reporting.settings import TablesSettings
from stepcredit.reporting.tables import raw_files, write_tables


def tables_of(root, config):
    write_tables(root, TablesSettings.from_config(config), root / "tables")
    return Tables(root / "tables")


def rewrite(path, **columns):
    pd.read_parquet(path).assign(**columns).to_parquet(path, index=False)


def spearman(tables, **where):
    return tables.row("signal", checkpoint="sft", scorer="frozen", against="continuations", **where)


def test_a_potential_that_ranks_like_success_correlates_at_one(raw_run):
    root, config = raw_run
    path = root / "signal/sft/step0.parquet"
    frame = pd.read_parquet(path)
    rewrite(path, potential_frozen=np.linspace(-3, 3, len(frame)), successes=np.arange(len(frame)) // 3)
    row = spearman(tables_of(root, config), boundaries="all")
    assert row["mean"] == pytest.approx(0.999, abs=2e-3)  # successes have ties
    assert (row["points"], row["puzzles"]) == (60, 15)


def test_within_puzzles_what_only_tells_puzzles_apart_is_gone(raw_run):
    root, config = raw_run
    path = root / "signal/sft/step0.parquet"
    frame = pd.read_parquet(path)
    # The potential says which puzzle it is, and within a puzzle ranks its four boundaries the wrong way round.
    position = frame.index % 4
    rewrite(path, potential_frozen=10.0 * frame["puzzle"] - position, successes=frame["puzzle"] + position)
    tables = tables_of(root, config)
    assert spearman(tables, boundaries="all")["mean"] > 0.9
    assert spearman(tables, boundaries="within puzzles")["mean"] == pytest.approx(-1)
    assert spearman(tables, boundaries="after the first paragraph")["points"] == 45


def test_boundaries_that_cannot_be_ranked_leave_the_correlation_empty(raw_run):
    root, config = raw_run
    path = root / "signal/sft/step0.parquet"
    pd.read_parquet(path).iloc[:2].to_parquet(path, index=False)
    row = spearman(tables_of(root, config), boundaries="all")
    assert (row["mean"], row["low"], row["points"]) == (None, None, 2)


def test_points_hold_shares(finished_run):
    rows = Tables(finished_run / "tables").rows("signal_points", checkpoint="sft")
    frame = pd.read_parquet(finished_run / "signal/sft/step0.parquet")
    assert [row["continuations"] for row in rows] == pytest.approx((frame.successes / 20).tolist())
    assert [row["answers"] for row in rows] == pytest.approx((frame.answers_right / 20).tolist())


def test_a_smaller_cap_turns_longer_completions_into_failures(raw_run):
    root, config = raw_run
    # 4 samples a puzzle, all right, of 100, 200, 300 and 400 tokens; caps 112, 168, 224, 336 and 448.
    for arm in config.arms:
        for seed in config.seeds_of(arm):
            path = root / f"eval/{arm}/seed{seed}/step40.parquet"
            tokens = 100 * (pd.read_parquet(path)["sample"] + 1)
            right = 1.0 if arm == "baseline" else (tokens > 100).astype(float)
            rewrite(path, tokens=tokens, reward=right, finished=True, well_formed=True)
    tables = tables_of(root, config)

    def by_cap(arm, metric):
        return {row["cap"]: row["mean"] for row in tables.rows("cap_sensitivity", arm=arm, metric=metric)}

    assert by_cap("baseline", "pass@1") == {112: 0.25, 168: 0.25, 224: 0.5, 336: 0.75, 448: 1}
    assert by_cap("baseline", "accuracy_of_finished") == dict.fromkeys([112, 168, 224, 336, 448], 1)
    assert by_cap("frozen", "pass@1") == {112: 0, 168: 0, 224: 0.25, 336: 0.5, 448: 0.75}
    assert by_cap("frozen", "finished") == by_cap("baseline", "finished")
    assert set(by_cap("frozen", "pass@1 minus baseline").values()) == {-0.25}
    assert by_cap("baseline", "pass@1 minus baseline") == {}


def test_the_last_cap_is_the_whole_evaluation(finished_run):
    tables = Tables(finished_run / "tables")
    whole = tables.interval("arms", arm="frozen", step=40, metric="pass@1")
    assert tables.interval("cap_sensitivity", arm="frozen", cap=448, metric="pass@1") == whole


def test_the_guard_table_compares_the_first_and_the_last_steps(raw_run):
    root, config = raw_run
    path = root / "rl/no_guard/seed0/metrics.parquet"
    steps = len(pd.read_parquet(path))
    rewrite(path, paragraph_length=np.arange(1.0, steps + 1))
    for seed, value in zip(config.seeds, (0.1, 0.2, 0.6), strict=True):
        rewrite(root / f"rl/frozen/seed{seed}/metrics.parquet", at_cap=value)
    tables = tables_of(root, config)
    row = tables.row("failures", arm="no_guard", metric="paragraph_length")
    assert (row["early"], row["late"], row["guard"], row["seeds"]) == (3, steps - 2, None, 1)
    row = tables.row("failures", arm="frozen", metric="at_cap")
    assert (row["early"], row["late"], row["low"], row["high"]) == (0.3, 0.3, 0.1, 0.6)
    assert not tables.rows("failures", arm="baseline")[0]["shaped"]


def test_arms_of_different_seeds_are_compared_over_the_seeds_that_both_have(finished_run):
    tables = Tables(finished_run / "tables")
    means = {
        arm: pd.read_parquet(finished_run / f"eval/{arm}/seed0/step40.parquet")["reward"].mean()
        for arm in ("baseline", "no_guard")
    }
    row = tables.row("paired", arm="no_guard", step=40, metric="pass@1")
    assert row["seeds"] == 1
    assert row["mean"] == pytest.approx(means["no_guard"] - means["baseline"], abs=1e-6)
    assert tables.row("arms", arm="no_guard", step=40, metric="pass@1")["seeds"] == 1
    assert tables.row("pairs", arm="baseline", other="no_guard", step=40, metric="pass@1")["seeds"] == 1
    assert tables.row("paired", arm="frozen", step=40, metric="pass@1")["seeds"] == 3


def test_an_arm_is_evaluated_at_its_own_steps_alone(tmp_path):
    from fabricate import CONFIG

    arms = CONFIG["arms"] | {"moving": CONFIG["arms"]["moving"] | {"steps": [20, 40]}}
    config = fabricate(tmp_path, {"arms": arms})
    assert not (tmp_path / "eval/moving/seed0/step10.parquet").exists()
    assert all(path.is_file() for path in raw_files(tmp_path, TablesSettings.from_config(config)))
    tables = tables_of(tmp_path, config)
    assert sorted({row["step"] for row in tables.rows("arms", arm="moving")}) == [0, 20, 40]
    assert {(row["from_step"], row["step"]) for row in tables.rows("gains", arm="moving")} == {
        (0, 20),
        (0, 40),
        (20, 40),
    }
    assert {row["step"] for row in tables.rows("pairs", arm="frozen", other="moving")} == {0, 20, 40}


def test_main_arms_are_those_without_a_question(finished_run):
    tables = Tables(finished_run / "tables")
    assert [row["arm"] for row in tables.main_arms()] == ["baseline", "frozen", "moving"]
    assert tables.guard_arms() == ["baseline", "frozen", "moving", "no_guard"]
    assert tables.unguarded_arms() == ["no_guard"]
