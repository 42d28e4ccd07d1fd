"""Tables of the data, and of which arms there are."""

from __future__ import annotations

from pathlib import Path

from stepcredit.provenance.errors import UserError
from stepcredit.reporting.csvfiles import Row, read_rows, write_rows
from stepcredit.reporting.layout import RunLayout
from stepcredit.reporting.raw import read_parquet
from stepcredit.reporting.settings import TablesSettings

SPLITS = ("demonstrations", "rl", "validation", "heldout")


def write_data_tables(run: RunLayout, settings: TablesSettings, out_dir: Path) -> None:
    """funnel.csv (stage, rows), splits.csv (split, puzzles), arm_list.csv (one row an arm, in order)."""
    if not run.funnel.is_file():
        raise UserError(f"{run.funnel}: missing; the stage that writes it has not run (see `snakemake -n`)")
    write_rows(out_dir / "funnel.csv", ["stage", "rows"], read_rows(run.funnel))
    splits: list[Row] = [{"split": name, "rows": len(read_parquet(run.split(name)))} for name in SPLITS]
    write_rows(out_dir / "splits.csv", ["split", "rows"], splits)
    arms: list[Row] = [
        {
            "arm": name,
            "label": arm.label,
            "baseline": name == settings.baseline,
            "credit": arm.credit,
            "scorer": arm.scorer.model if arm.scorer else None,
            "guard": arm.shaping.max_paragraph_len if arm.shaping else None,
            "question": arm.question,
        }
        for name, arm in settings.arms.items()
    ]
    write_rows(out_dir / "arm_list.csv", ["arm", "label", "baseline", "credit", "scorer", "guard", "question"], arms)
