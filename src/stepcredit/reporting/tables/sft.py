"""Tables of supervised fine-tuning and of the learning-rate sweep."""

from __future__ import annotations

import json
from pathlib import Path

from stepcredit.provenance.errors import UserError
from stepcredit.reporting.csvfiles import Row, interval_cells, write_rows
from stepcredit.reporting.layout import RunLayout
from stepcredit.reporting.measures import measures
from stepcredit.reporting.raw import read_evaluation, read_evaluations, read_parquet
from stepcredit.reporting.settings import TablesSettings


def write_sft_tables(run: RunLayout, settings: TablesSettings, out_dir: Path) -> None:
    """sft.csv, sft_curve.csv and sweep.csv."""
    evaluation = read_evaluation(run.sft_evaluation, settings.evaluation.samples)
    rows: list[Row] = [
        {"metric": name, **interval_cells(measure.interval(settings.bootstrap))}
        for name, measure in measures([evaluation], settings.evaluation.pass_k).items()
    ]
    write_rows(out_dir / "sft.csv", ["metric", "mean", "low", "high"], rows)
    curve = read_parquet(run.sft("metrics"), ["step", "loss", "learning_rate", "grad_norm"])
    write_rows(
        out_dir / "sft_curve.csv",
        ["step", "loss", "learning_rate", "grad_norm"],
        curve.sort_values("step").to_dict("records"),  # type: ignore[arg-type]
    )
    write_rows(
        out_dir / "sweep.csv",
        ["learning_rate", "metric", "mean", "low", "high", "best"],
        _sweep(run, settings),
    )


def _sweep(run: RunLayout, settings: TablesSettings) -> list[Row]:
    if not run.best_learning_rate.is_file():
        raise UserError(f"{run.best_learning_rate}: missing; the sweep has not been judged yet")
    best = json.loads(run.best_learning_rate.read_text(encoding="utf-8"))["learning_rate"]
    sweep = settings.sweep
    paths = [run.sweep(rate, "validation") for rate in sweep.learning_rates]
    rows: list[Row] = []
    for rate, evaluation in zip(sweep.learning_rates, read_evaluations(paths, sweep.samples), strict=True):
        for name, measure in measures([evaluation], [1, sweep.samples]).items():
            cells = interval_cells(measure.interval(settings.bootstrap))
            rows.append({"learning_rate": rate, "metric": name, **cells, "best": rate == best})
    return rows
