"""Tables of the arms on the held-out puzzles."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from stepcredit.reporting.csvfiles import Row, interval_cells, write_rows
from stepcredit.reporting.layout import RunLayout
from stepcredit.reporting.measures import Measure, measures
from stepcredit.reporting.raw import Evaluation, read_evaluations
from stepcredit.reporting.settings import TablesSettings
from stepcredit.reporting.tables.caps import write_cap_sensitivity

COLUMNS = ["arm", "step", "metric", "mean", "low", "high", "seeds"]
PAIR_COLUMNS = ["arm", "other", *COLUMNS[1:]]
GAIN_COLUMNS = ["arm", "from_step", *COLUMNS[1:]]

Evaluations = dict[tuple[str, int], list[Evaluation]]
"""The held-out samples of each (arm, step), one item a seed."""

Evaluated = dict[tuple[str, int], dict[str, Measure]]
"""The metrics of each (arm, step), by name."""


def write_arm_tables(run: RunLayout, settings: TablesSettings, out_dir: Path) -> Evaluated:
    """arms.csv, paired.csv (to the baseline), pairs.csv (each two arms) and gains.csv (between steps)."""
    evaluations = read_arms(run, settings)
    evaluated = {key: measures(found, settings.evaluation.pass_k) for key, found in evaluations.items()}
    bootstrap = settings.bootstrap
    arms: list[Row] = []
    pairs: list[Row] = []
    gains: list[Row] = []
    for (arm, step), named in evaluated.items():
        for name, measure in named.items():
            key = {"arm": arm, "step": step, "metric": name}
            arms.append(key | interval_cells(measure.interval(bootstrap)) | {"seeds": len(settings.seeds_of(arm))})
            for other in (other for other in settings.arms if other != arm and (other, step) in evaluated):
                difference = measure.minus(evaluated[other, step][name], bootstrap)
                seeds = len(settings.common_seeds(arm, other))
                pairs.append(key | {"other": other} | interval_cells(difference) | {"seeds": seeds})
    for arm in settings.arms:
        for before, step in _step_pairs(settings.steps_of(arm)):
            for name, measure in evaluated[arm, step].items():
                gain = measure.minus(evaluated[arm, before][name], bootstrap)
                key = {"arm": arm, "from_step": before, "step": step, "metric": name}
                gains.append(key | interval_cells(gain) | {"seeds": len(settings.seeds_of(arm))})
    paired = [row for row in pairs if row["other"] == settings.baseline]
    write_rows(out_dir / "arms.csv", COLUMNS, arms)
    write_rows(out_dir / "paired.csv", COLUMNS, paired)
    write_rows(out_dir / "pairs.csv", PAIR_COLUMNS, pairs)
    write_rows(out_dir / "gains.csv", GAIN_COLUMNS, gains)
    write_cap_sensitivity(evaluations, settings, out_dir)
    return evaluated


def read_arms(run: RunLayout, settings: TablesSettings) -> Evaluations:
    """The samples of every arm at every step it was evaluated at, over the same puzzles throughout."""
    keys = [(arm, step) for arm in settings.arms for step in settings.steps_of(arm)]
    paths = [[run.evaluation(arm, seed, step) for seed in settings.seeds_of(arm)] for arm, step in keys]
    found = iter(read_evaluations([path for group in paths for path in group], settings.evaluation.samples))
    return {key: [next(found) for _ in group] for key, group in zip(keys, paths, strict=True)}


def _step_pairs(steps: list[int]) -> list[tuple[int, int]]:
    """Each step against the one before it and against the first."""
    return sorted(set(pairwise(steps)) | {(steps[0], step) for step in steps[1:]})
