"""From the raw files of a run to the tables of its report: every number of the report is in one of these."""

from __future__ import annotations

from pathlib import Path

from stepcredit.jobs import stability_runs
from stepcredit.reporting.layout import RunLayout
from stepcredit.reporting.settings import TablesSettings
from stepcredit.reporting.tables.arms import write_arm_tables
from stepcredit.reporting.tables.data import SPLITS, write_data_tables
from stepcredit.reporting.tables.failures import write_failures
from stepcredit.reporting.tables.mismatch_cost import write_mismatch_cost_tables
from stepcredit.reporting.tables.model_drift import write_drift_tables
from stepcredit.reporting.tables.parity import parity_files, write_parity_tables
from stepcredit.reporting.tables.scoring import MODELS, write_scoring_tables
from stepcredit.reporting.tables.sft import write_sft_tables
from stepcredit.reporting.tables.signal import signal_files, write_signal_tables
from stepcredit.reporting.tables.stability import write_stability_tables
from stepcredit.reporting.tables.timing import write_timing_tables
from stepcredit.reporting.tables.training import write_training_tables
from stepcredit.reporting.tables.wall_clock import write_wall_clock

STABILITY_FILES = ("drift/drift", "drift/start", "fingerprint/fingerprint", "fingerprint/gradients", "cost/cost")


def raw_files(results: Path, settings: TablesSettings) -> list[Path]:
    """Every file that `write_tables` reads."""
    run = RunLayout(results)
    runs = [(arm, seed) for arm in settings.arms for seed in settings.seeds_of(arm)]
    rates = settings.sweep.learning_rates
    stability = [(key, seed) for key in stability_runs(settings.stability) for seed in settings.stability.seeds]
    return [
        run.funnel,
        *(run.split(name) for name in SPLITS),
        *(run.sft(name) for name in ("metrics", "timings")),
        run.best_learning_rate,
        *(run.sweep(rate, name) for rate in rates for name in ("validation", "timings")),
        *(run.rl(arm, seed, name) for arm, seed in runs for name in ("metrics", "timings")),
        *dict.fromkeys(run.evaluation(*key, step) for key in runs for step in settings.steps_of(key[0])),
        run.sft_evaluation,
        *(run.stability_run(*key, seed, name) for key, seed in stability for name in ("metrics", "evaluation")),
        *(run.stability(name) for name in STABILITY_FILES),
        *parity_files(run, settings),
        *signal_files(run, settings).values(),
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
    write_signal_tables(run, settings, out_dir)
    write_failures(run, settings, out_dir)
    elapsed = write_timing_tables(run, settings, out_dir)
    write_drift_tables(run, settings, out_dir)
    write_stability_tables(run, settings, out_dir)
    write_mismatch_cost_tables(run, settings, out_dir)
    write_parity_tables(run, settings, out_dir)
    write_wall_clock(evaluated, elapsed, settings, out_dir)
    write_scoring_tables(run, elapsed[settings.baseline], out_dir)
