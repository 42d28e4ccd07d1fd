"""Tables of the arms on the held-out puzzles."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from stepcredit.reporting.csvfiles import Row, interval_cells, write_rows
from stepcredit.reporting.layout import RunLayout
from stepcredit.reporting.measures import Measure, measures
from stepcredit.reporting.raw import read_evaluations
from stepcredit.reporting.settings import TablesSettings

COLUMNS = ["arm", "step", "metric", "mean", "low", "high", "seeds"]
PAIR_COLUMNS = ["arm", "other", *COLUMNS[1:]]
GAIN_COLUMNS = ["arm", "from_step", *COLUMNS[1:]]

Evaluated = dict[tuple[str, int], dict[str, Measure]]
"""The metrics of each (arm, step), by name."""


def write_arm_tables(run: RunLayout, settings: TablesSettings, out_dir: Path) -> Evaluated:
    """arms.csv, paired.csv (to the baseline), pairs.csv (each two arms) and gains.csv (between steps)."""
    evaluated = read_arms(run, settings)
    seeds = len(settings.seeds)
    bootstrap = settings.bootstrap
    arms: list[Row] = []
    pairs: list[Row] = []
    gains: list[Row] = []
    for (arm, step), named in evaluated.items():
        for name, measure in named.items():
            key = {"arm": arm, "step": step, "metric": name, "seeds": seeds}
            arms.append(key | interval_cells(measure.interval(bootstrap)))
            for other in (other for other in settings.arms if other != arm):
                difference = measure.minus(evaluated[other, step][name], bootstrap)
                pairs.append(key | {"other": other} | interval_cells(difference))
    for arm in settings.arms:
        for before, step in _step_pairs(settings.evaluation.steps):
            for name, measure in evaluated[arm, step].items():
                gain = measure.minus(evaluated[arm, before][name], bootstrap)
                key = {"arm": arm, "from_step": before, "step": step, "metric": name, "seeds": seeds}
                gains.append(key | interval_cells(gain))
    paired = [row for row in pairs if row["other"] == settings.baseline]
    write_rows(out_dir / "arms.csv", COLUMNS, arms)
    write_rows(out_dir / "paired.csv", COLUMNS, paired)
    write_rows(out_dir / "pairs.csv", PAIR_COLUMNS, pairs)
    write_rows(out_dir / "gains.csv", GAIN_COLUMNS, gains)
    return evaluated


def read_arms(run: RunLayout, settings: TablesSettings) -> Evaluated:
    """The metrics of every arm at every evaluated step, over the same puzzles throughout."""
    keys = [(arm, step) for arm in settings.arms for step in settings.evaluation.steps]
    paths = [run.evaluation(arm, seed, step) for arm, step in keys for seed in settings.seeds]
    evaluations = read_evaluations(paths, settings.evaluation.samples)
    seeds = len(settings.seeds)
    return {
        key: measures(evaluations[index * seeds : (index + 1) * seeds], settings.evaluation.pass_k)
        for index, key in enumerate(keys)
    }


def _step_pairs(steps: list[int]) -> list[tuple[int, int]]:
    """Each step against the one before it and against the first."""
    return sorted(set(pairwise(steps)) | {(steps[0], step) for step in steps[1:]})
