import csv
import json

import numpy as np
import pandas as pd
import pytest

from stepcredit.provenance.errors import UserError
from stepcredit.reporting.accessor import Tables
from stepcredit.reporting.csvfiles import read_rows, write_rows
from stepcredit.reporting.settings import TablesSettings
from stepcredit.reporting.tables import write_tables


def rewrite(path, change):
    frame = pd.read_parquet(path)
    change(frame)
    frame.to_parquet(path, index=False)


def answer_puzzles(path, right_of_puzzle, finished=True):
    """Give each puzzle a number of right samples, the first ones."""

    def change(frame):
        right = frame["sample"] < frame["puzzle"].map(right_of_puzzle)
        frame["reward"] = right.astype(float)
        frame["well_formed"] = frame["finished"] = finished

    rewrite(path, change)


def tables_of(root, config):
    write_tables(root, TablesSettings.from_config(config), root / "tables")
    return Tables(root / "tables")


def test_the_columns_that_others_rely_on_are_there_in_order(finished_run):
    def header(name):
        return next(csv.reader((finished_run / "tables" / f"{name}.csv").open()))

    assert header("arms") == ["arm", "step", "metric", "mean", "low", "high", "seeds"]
    assert header("paired") == ["arm", "step", "metric", "mean", "low", "high", "seeds"]
    assert header("step_time") == ["arm", "scorer", "phase", "seconds_per_step"]
    assert header("training") == ["arm", "step", "metric", "mean", "low", "high", "seeds"]
    assert header("scoring") == [
        *["model", "scorer", "wall_s", "requests", "bytes"],
        *["tokens_computed", "tokens_minimum", "tokens_minimum_blocks", "tokens_cached", "max_abs_difference"],
    ]


def test_the_rules_know_every_table_and_figure(finished_run):
    from stepcredit.reporting.figures import FIGURES as DRAWN
    from stepcredit.reporting.names import FIGURES, TABLES, TIMING_TABLES

    written = {path.stem for path in (finished_run / "tables").glob("*.csv")}
    assert written == {*TABLES, *TIMING_TABLES}
    assert [figure.name for figure in DRAWN] == list(FIGURES)


def test_every_raw_file_is_listed_for_the_manifest(raw_run):
    from stepcredit.reporting.tables import raw_files

    root, config = raw_run
    listed = raw_files(root, TablesSettings.from_config(config))
    assert all(path.is_file() for path in listed)
    for path in root.rglob("*"):
        if path.is_file() and path not in listed:
            others = {"manifest.json", "rollouts.parquet", "playground.html"}
            assert path.name in others or path.match("sweep/*/metrics.parquet")


def test_pass_at_k_and_its_paired_difference_match_a_hand_computation(raw_run):
    root, config = raw_run
    # baseline: 1 of 4 right everywhere: pass@1 0.25, pass@4 1. frozen: 2 of 4 on even puzzles, 0 on odd ones:
    # pass@1 0.25, pass@4 0.5. moving: 2 of 4 everywhere: pass@1 0.5, without spread.
    for seed in config.seeds:
        folder = root / "eval"
        answer_puzzles(folder / f"baseline/seed{seed}/step40.parquet", lambda puzzle: 1)
        answer_puzzles(folder / f"frozen/seed{seed}/step40.parquet", lambda puzzle: 0 if puzzle % 2 else 2)
        answer_puzzles(folder / f"moving/seed{seed}/step40.parquet", lambda puzzle: 2)
    tables = tables_of(root, config)
    assert tables.interval("arms", arm="baseline", step=40, metric="pass@1").mean == 0.25
    assert tables.interval("arms", arm="frozen", step=40, metric="pass@4").mean == 0.5
    assert tables.interval("paired", arm="frozen", step=40, metric="pass@1").mean == 0
    assert tables.interval("paired", arm="frozen", step=40, metric="pass@4").mean == -0.5
    moving = tables.interval("paired", arm="moving", step=40, metric="pass@1")
    assert (moving.mean, moving.low, moving.high) == (0.25, 0.25, 0.25)
    assert tables.interval("pairs", arm="moving", other="frozen", step=40, metric="pass@1").mean == 0.25


def test_accuracy_of_the_finished_is_a_ratio_of_sums_and_empty_where_none_finished(raw_run):
    root, config = raw_run
    for seed in config.seeds:
        path = root / f"eval/baseline/seed{seed}/step40.parquet"
        answer_puzzles(path, lambda puzzle: 1)

        def cut(frame):
            frame["finished"] = frame["sample"] < 2

        rewrite(path, cut)
        answer_puzzles(root / f"eval/frozen/seed{seed}/step40.parquet", lambda puzzle: 0, finished=False)
    tables = tables_of(root, config)
    accuracy = {"metric": "accuracy_of_finished", "step": 40}
    assert tables.interval("arms", arm="baseline", **accuracy).mean == 0.5
    assert tables.row("arms", arm="frozen", **accuracy)["mean"] is None


def test_step_zero_is_the_sft_checkpoint_for_every_arm(finished_run):
    tables = Tables(finished_run / "tables")
    start = tables.interval("sft", metric="pass@1")
    for arm in ("baseline", "frozen", "moving"):
        assert tables.interval("arms", arm=arm, step=0, metric="pass@1").mean == start.mean
        difference = tables.rows("paired", arm=arm, step=0, metric="pass@1")
        assert all(row["mean"] == row["low"] == row["high"] == 0 for row in difference)


def test_step_time_is_the_median_over_steps_of_the_sum_of_each_phase(raw_run):
    root, config = raw_run
    # Generation 1, 2 (in two parts) and 6 s, training 1 s each: medians 2 and 1, and 3 of the sums 2, 3, 7.
    generate = [(1, 1.0), (2, 1.5), (2, 0.5), (3, 6.0)]
    rows = [{"step": step, "phase": "generate", "seconds": value} for step, value in generate]
    rows += [{"step": step, "phase": "train", "seconds": 1.0} for step in (1, 2, 3)]
    for seed in config.seeds:
        frame = pd.DataFrame(rows).assign(cpu_seconds=0.0)
        frame.to_parquet(root / f"rl/baseline/seed{seed}/timings.parquet", index=False)
    tables = tables_of(root, config)
    seconds = {row["phase"]: row["seconds_per_step"] for row in tables.rows("step_time", arm="baseline")}
    assert seconds == {"generate": 2, "train": 1, "total": 3}
    assert {row["scorer"] for row in tables.rows("step_time", arm="frozen")} == {"frozen/tree"}
    assert {row["scorer"] for row in tables.rows("step_time", arm="baseline")} == {"none"}


def test_training_gives_mean_and_range_over_seeds(finished_run):
    tables = Tables(finished_run / "tables")
    values = [row["value"] for row in tables.rows("training_seeds", arm="frozen", step=7, metric="reward")]
    row = tables.row("training", arm="frozen", step=7, metric="reward")
    assert len(values) == row["seeds"] == 3
    assert row["mean"] == pytest.approx(np.mean(values), abs=1e-5)
    assert (row["low"], row["high"]) == (min(values), max(values))


def test_metrics_of_shaping_are_absent_for_the_baseline_and_duplicates_are_counted(finished_run):
    tables = Tables(finished_run / "tables")
    assert not tables.rows("training", arm="baseline", metric="shaping_mean")
    assert tables.rows("training", arm="frozen", metric="shaping_mean")
    assert [row["arm"] for row in tables.rows("deduplication")] == ["frozen", "moving", "no_guard"]
    row = tables.row("deduplication", arm="frozen")
    assert row["mean"] == pytest.approx(1 - row["unique"] / row["scorings"], abs=1e-6)
    assert row["mean"] == pytest.approx(0.13, abs=0.002)


def test_wall_clock_compares_with_a_baseline_step_that_took_at_least_as_long(finished_run):
    tables = Tables(finished_run / "tables")
    rows = tables.rows("wall_clock", arm="frozen", metric="pass@1")
    assert [(row["step"], row["baseline_step"]) for row in rows] == [(10, 20), (20, 30), (30, 40)]
    later = tables.interval("arms", arm="baseline", step=40, metric="pass@1").mean
    ours = tables.interval("arms", arm="frozen", step=30, metric="pass@1").mean
    assert rows[-1]["mean"] == pytest.approx(ours - later, abs=1e-5)


def test_the_sweep_marks_the_chosen_rate_and_no_other(finished_run):
    best = [
        row["learning_rate"] for row in Tables(finished_run / "tables").rows("sweep", metric="pass@1") if row["best"]
    ]
    assert best == [1.5e-4]


def test_a_missing_file_is_named(raw_run):
    root, config = raw_run
    (root / "eval/moving/seed1/step20.parquet").unlink()
    with pytest.raises(UserError, match=r"eval/moving/seed1/step20\.parquet"):
        tables_of(root, config)


def test_a_missing_column_is_named(raw_run):
    root, config = raw_run
    path = root / "eval/frozen/seed0/step10.parquet"
    pd.read_parquet(path).drop(columns="finished").to_parquet(path, index=False)
    with pytest.raises(UserError, match=r"step10\.parquet: lacks the column\(s\) finished"):
        tables_of(root, config)


def test_evaluations_of_other_puzzles_or_sample_counts_are_refused(raw_run):
    root, config = raw_run
    path = root / "eval/frozen/seed0/step10.parquet"
    frame = pd.read_parquet(path)
    frame[frame["puzzle"] != 3].to_parquet(path, index=False)
    with pytest.raises(UserError, match="its puzzles differ"):
        tables_of(root, config)
    frame[(frame["puzzle"] != 3) | (frame["sample"] > 0)].to_parquet(path, index=False)
    with pytest.raises(UserError, match="expected 4 different samples"):
        tables_of(root, config)


def test_settings_travel_as_json_and_refuse_what_they_do_not_know(raw_run):
    _, config = raw_run
    settings = TablesSettings.from_config(config)
    assert TablesSettings.model_validate_json(settings.canonical_json()) == settings
    wrong = json.loads(settings.canonical_json()) | {"baseline": "nobody"}
    with pytest.raises(ValueError, match="nobody"):
        TablesSettings.model_validate(wrong)


def test_csv_files_write_numbers_one_way_and_read_them_back(tmp_path):
    path = tmp_path / "t.csv"
    row = {
        "name": "a,b",
        "whole": 3,
        "share": 1 / 3,
        "tiny": -0.0,
        "none": None,
        "nan": float("nan"),
        "yes": True,
    }
    write_rows(path, list(row), [row])
    assert path.read_text() == 'name,whole,share,tiny,none,nan,yes\n"a,b",3,0.333333,0,,,true\n'
    back = {"name": "a,b", "whole": 3, "share": 0.333333, "tiny": 0, "none": None, "nan": None, "yes": True}
    assert read_rows(path) == [back]
