"""Arms compared at equal training time instead of equal steps (CPAS, "Making the scorer (almost) free")."""

from __future__ import annotations

from pathlib import Path

from stepcredit.evaluation.statistics import Floats
from stepcredit.reporting.csvfiles import Row, interval_cells, write_rows
from stepcredit.reporting.settings import TablesSettings
from stepcredit.reporting.tables.arms import Evaluated

ELAPSED = ["arm", "step", "seconds"]
COLUMNS = ["arm", "step", "seconds", "baseline_step", "metric", "mean", "low", "high", "seeds"]


def write_wall_clock(evaluated: Evaluated, elapsed: dict[str, Floats], settings: TablesSettings, out_dir: Path) -> None:
    """elapsed.csv: training time of each arm up to each evaluated step.

    wall_clock.csv: each arm at each step against the baseline when it had trained at least as long. That is the
    baseline's first evaluated step whose time is not less than the arm's, which favours the baseline; where it has no
    such step, there is no row.
    """
    times: list[Row] = [
        {"arm": arm, "step": step, "seconds": _seconds(elapsed[arm], step)}
        for arm in settings.arms
        for step in settings.evaluation.steps
    ]
    write_rows(out_dir / "elapsed.csv", ELAPSED, times)
    baseline = settings.baseline
    steps = settings.evaluation.steps
    rows: list[Row] = []
    for arm in (arm for arm in settings.arms if arm != baseline):
        for step in (step for step in settings.steps_of(arm) if step != steps[0]):
            seconds = _seconds(elapsed[arm], step)
            later = [other for other in steps if _seconds(elapsed[baseline], other) >= seconds]
            if not later:
                continue
            for name, measure in evaluated[arm, step].items():
                difference = measure.minus(evaluated[baseline, later[0]][name], settings.bootstrap)
                key = {
                    "arm": arm,
                    "step": step,
                    "seconds": seconds,
                    "baseline_step": later[0],
                    "metric": name,
                }
                rows.append(key | interval_cells(difference) | {"seeds": len(settings.common_seeds(arm, baseline))})
    write_rows(out_dir / "wall_clock.csv", COLUMNS, rows)


def _seconds(per_step: Floats, step: int) -> float:
    """Training time up to and including `step` (steps count from 1)."""
    return float(per_step[:step].sum())
