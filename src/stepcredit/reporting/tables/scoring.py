"""Tables of the scoring study: cost of each scorer, agreement of their scores, step time, whole-run projection."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pandas as pd

from stepcredit.evaluation.statistics import Floats
from stepcredit.provenance.schemas import SCHEMAS
from stepcredit.reporting.csvfiles import Row, write_rows
from stepcredit.reporting.layout import RunLayout
from stepcredit.reporting.raw import read_parquet
from stepcredit.reporting.tables.timing import PHASES

MODELS = ("run", "large")
PLAIN = "plain"
COSTS = ["wall_s", "requests", "bytes", "tokens_computed", "tokens_minimum", "tokens_minimum_blocks", "tokens_cached"]
SCORING = ["model", "scorer", *COSTS, "max_abs_difference"]
REPETITIONS = ["model", "scorer", "scorings", "unique", "repetitions", "wall_low", "wall_high"]
AGREEMENT = ["model", "first", "second", "pairs", "max_abs_difference"]
STEPS = ["model", "scorer", "phase", "seconds_per_step", "steps"]
PROJECTION = ["model", "scorer", "seconds_per_scoring", "scorings_per_step", "minutes", "mean", "low", "high"]


def write_scoring_tables(run: RunLayout, baseline: Floats, out_dir: Path) -> None:
    """scoring.csv, scoring_repetitions.csv, scoring_agreement.csv, scoring_steps.csv and scoring_projection.csv.

    Args:
        baseline: seconds of each training step of the baseline arm.
    """
    frames = [read_parquet(run.scoring(name), list(SCHEMAS["scoring_benchmark"])) for name in MODELS]
    measured = [
        (str(model), str(scorer), rows)
        for frame in frames
        for (model, scorer), rows in frame.groupby(["model", "scorer"], sort=False)
    ]
    plain = {model: _scores(rows)[0] for model, scorer, rows in measured if scorer == PLAIN}
    scorers = [entry for entry in measured if entry[1] != PLAIN]
    write_rows(out_dir / "scoring.csv", SCORING, [_cost(*entry, plain[entry[0]]) for entry in scorers])
    write_rows(out_dir / "scoring_repetitions.csv", REPETITIONS, [_repetitions(*entry) for entry in scorers])
    write_rows(out_dir / "scoring_agreement.csv", AGREEMENT, _agreement(scorers))
    steps = read_parquet(run.scoring("steps"), list(SCHEMAS["scoring_steps"]))
    write_rows(out_dir / "scoring_steps.csv", STEPS, _steps(steps))
    write_rows(out_dir / "scoring_projection.csv", PROJECTION, _projection(steps, baseline))


def _cost(model: str, scorer: str, rows: pd.DataFrame, plain: Floats) -> Row:
    """Medians over repetitions; the difference is the largest of all of them."""
    difference = max(float(np.abs(scores - plain).max()) for scores in _scores(rows))
    medians = {column: float(rows[column].median()) for column in COSTS}
    return {"model": model, "scorer": scorer, **medians, "max_abs_difference": difference}


def _repetitions(model: str, scorer: str, rows: pd.DataFrame) -> Row:
    return {
        "model": model,
        "scorer": scorer,
        "scorings": int(rows["scorings"].iloc[0]),
        "unique": int(rows["scorings_unique"].iloc[0]),
        "repetitions": len(rows),
        "wall_low": float(rows["wall_s"].min()),
        "wall_high": float(rows["wall_s"].max()),
    }


def _agreement(scorers: list[tuple[str, str, pd.DataFrame]]) -> list[Row]:
    """Largest difference between two repetitions of a scorer, and between repetitions of two scorers."""
    rows: list[Row] = []
    for model in dict.fromkeys(entry[0] for entry in scorers):
        runs = {scorer: _scores(frame) for name, scorer, frame in scorers if name == model}
        for first, second in itertools.combinations_with_replacement(runs, 2):
            same = itertools.combinations(runs[first], 2)
            pairs = list(same if first == second else itertools.product(runs[first], runs[second]))
            if pairs:
                largest = max(float(np.abs(one - other).max()) for one, other in pairs)
                key = {"model": model, "first": first, "second": second}
                rows.append(key | {"pairs": len(pairs), "max_abs_difference": largest})
    return rows


def _scores(rows: pd.DataFrame) -> list[Floats]:
    return [np.asarray(scores, dtype=np.float64) for scores in rows["scores"]]


def _steps(frame: pd.DataFrame) -> list[Row]:
    """Median seconds of each phase, and of the whole step."""
    rows: list[Row] = []
    for (model, scorer), group in frame.groupby(["model", "scorer"], sort=False):
        table = group.pivot_table(index="step", columns="phase", values="seconds", aggfunc="sum").fillna(0.0)
        table["total"] = table.sum(axis=1)
        for phase in (phase for phase in PHASES if phase in table):
            key = {"model": model, "scorer": scorer, "phase": phase}
            rows.append(key | {"seconds_per_step": float(table[phase].median()), "steps": len(table)})
    return rows


def _projection(frame: pd.DataFrame, baseline: Floats) -> list[Row]:
    """A whole run of the baseline's steps with the scoring of each added: minutes, and their ratio to the baseline's.

    Scoring is what the timed steps took per scoring, times the scorings that a step of the run's size has. `low` and
    `high` are the cheapest and the dearest of the timed steps.
    """
    rows: list[Row] = []
    scored = frame[(frame["phase"] == "score") & (frame["scorings"] > 0)]
    for (model, scorer), group in scored.groupby(["model", "scorer"], sort=False):
        scorings = group["scorings"].to_numpy(dtype=np.float64)
        each = group["seconds"].to_numpy(dtype=np.float64) / scorings
        per_step = float(np.median(scorings / group["prompts"] * group["run_prompts"]))
        added = np.array([np.median(each), each.min(), each.max()]) * per_step * len(baseline)
        total = float(baseline.sum())
        mean, low, high = (1 + added / total).tolist()
        key = {"model": model, "scorer": scorer, "seconds_per_scoring": float(np.median(each))}
        minutes = float(total + added[0]) / 60
        rows.append(key | {"scorings_per_step": per_step, "minutes": minutes, "mean": mean, "low": low, "high": high})
    return rows
