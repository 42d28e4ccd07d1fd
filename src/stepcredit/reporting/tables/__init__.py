"""From the raw files of a run to the tables of its report: every number of the report is in one of these."""

from __future__ import annotations

from pathlib import Path

from stepcredit.reporting.layout import RunLayout
from stepcredit.reporting.settings import TablesSettings
from stepcredit.reporting.tables.arms import write_arm_tables
from stepcredit.reporting.tables.data import SPLITS, write_data_tables
from stepcredit.reporting.tables.scoring import MODELS, write_scoring_tables
from stepcredit.reporting.tables.sft import write_sft_tables
from stepcredit.reporting.tables.timing import write_timing_tables
from stepcredit.reporting.tables.training import write_training_tables
from stepcredit.reporting.tables.wall_clock import write_wall_clock


def raw_files(results: Path, settings: TablesSettings) -> list[Path]:
    """Every file that `write_tables` reads."""
    run = RunLayout(results)
    arms = [(arm, seed) for arm in settings.arms for seed in settings.seeds]
    rates = settings.sweep.learning_rates
    return [
        run.funnel,
        *(run.split(name) for name in SPLITS),
        *(run.sft(name) for name in ("metrics", "timings")),
        run.best_learning_rate,
        *(run.sweep(rate, name) for rate in rates for name in ("validation", "timings")),
        *(run.rl(arm, seed, name) for arm, seed in arms for name in ("metrics", "timings")),
        *dict.fromkeys(run.evaluation(*key, step) for key in arms for step in settings.evaluation.steps),
        run.sft_evaluation,
        *(run.scoring(name) for name in (*MODELS, "steps")),
    ]


def write_tables(results: Path, settings: TablesSettings, out_dir: Path) -> None:
    """Write every table of a run as CSV (docs/results.md lists names, columns and units).

    Raises:
        UserError: a raw file is missing or does not hold what it must.
    """
    run = RunLayout(results)
    write_data_tables(run, settings, out_dir)
    write_sft_tables(run, settings, out_dir)
    evaluated = write_arm_tables(run, settings, out_dir)
    write_training_tables(run, settings, out_dir)
    elapsed = write_timing_tables(run, settings, out_dir)
    write_wall_clock(evaluated, elapsed, settings, out_dir)
    write_scoring_tables(run, elapsed[settings.baseline], out_dir)
