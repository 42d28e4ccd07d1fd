"""Commands that turn the raw files of a run into its tables, claims, figures and report.

Each writes a manifest beside its outputs: `manifest.json` in a directory, `{name}.manifest.json` for one file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stepcredit.cli.options import Manifest, OutDir, Settings
from stepcredit.provenance.errors import UserError
from stepcredit.provenance.manifest import MANIFEST_NAME
from stepcredit.provenance.record import record
from stepcredit.provenance.stages import DATA, MODULES
from stepcredit.reporting.names import FIGURES, TABLES, TIMING_TABLES

if TYPE_CHECKING:
    from stepcredit.reporting.settings import TablesSettings

commands = typer.Typer()

Results = Annotated[Path, typer.Option(help="Output directory of the run.")]
Tables = Annotated[Path, typer.Option("--tables", help="Directory of the tables.")]
Out = Annotated[Path, typer.Option(help="File to write.")]
Published = Annotated[Path, typer.Option(help="Numbers of the write-ups.")]
PUBLISHED = Path("config/published.yaml")


@commands.command("tables")
def tables(results: Results, settings: Settings, out_dir: OutDir) -> None:
    """Write the tables of a run as CSV."""
    from stepcredit.reporting.tables import raw_files, write_tables

    parsed = _tables_settings(settings)
    with record(
        "tables",
        out_dir / MANIFEST_NAME,
        modules=MODULES["tables"],
        inputs=raw_files(results, parsed),
        outputs=_tables(out_dir),
        settings=parsed,
        seed=parsed.statistics.seed,
    ):
        write_tables(results, parsed, out_dir)


@commands.command("claims")
def claims(tables: Tables, out: Out, published: Published = PUBLISHED) -> None:
    """Judge the claims of the write-ups from the tables."""
    from stepcredit.reporting.claims import write_claims

    with record(
        "claims",
        out.with_suffix(f".{MANIFEST_NAME}"),
        modules=MODULES["claims"],
        inputs=[published, *_tables(tables)],
        outputs=[out],
    ):
        write_claims(tables, published, out)


@commands.command("figures")
def figures(tables: Tables, out_dir: OutDir, published: Published = PUBLISHED) -> None:
    """Draw the figures of a run as SVG, with their alt texts."""
    from stepcredit.reporting.figures import write_figures

    with record(
        "figures",
        out_dir / MANIFEST_NAME,
        modules=MODULES["figures"],
        inputs=[published, *_tables(tables)],
        outputs=[*_figures(out_dir), out_dir / "alt.json"],
    ):
        write_figures(tables, published, out_dir)


@commands.command("report")
def report(results: Results, settings: Settings, out: Out) -> None:
    """Write the report: one HTML file that needs nothing else."""
    from stepcredit.config import Config
    from stepcredit.reporting.layout import RunLayout
    from stepcredit.reporting.report import write_report

    config = Config.model_validate_json(settings)
    run = RunLayout(results)
    rollouts = sorted(results.glob("rl/*/seed*/rollouts.parquet"))
    with record(
        "report",
        out.with_suffix(f".{MANIFEST_NAME}"),
        modules=MODULES["report"],
        data=DATA["report"],
        inputs=[*_tables(run.tables), *_figures(run.figures), run.claims, run.playground, *rollouts],
        outputs=[out],
        settings=config,
    ):
        write_report(config, results, out)


@commands.command("model-cards")
def model_cards(results: Results, settings: Settings, out_dir: OutDir, manifest: Manifest) -> None:
    """Lay out each final checkpoint with a model card, ready to load and to hand on."""
    from stepcredit.reporting.model_cards import checkpoints, write_models

    parsed = _tables_settings(settings)
    inputs = [results / "data" / f"raw.{MANIFEST_NAME}"]
    for checkpoint in checkpoints(results, parsed):
        inputs += [checkpoint.model, checkpoint.manifest, checkpoint.evaluation]
    with record(
        "model-cards",
        manifest,
        modules=MODULES["model-cards"],
        data=DATA["model-cards"],
        inputs=inputs,
        outputs=[out_dir],
        settings=parsed,
        seed=parsed.statistics.seed,
    ):
        models = write_models(results, parsed, out_dir)
    typer.echo(f"{out_dir}: {len(models)} models")


def _tables_settings(settings: str) -> TablesSettings:
    from pydantic import ValidationError

    from stepcredit.reporting.settings import TablesSettings

    try:
        return TablesSettings.model_validate_json(settings)
    except ValidationError as error:
        raise UserError(f"--settings: {' '.join(str(error).split())}") from None


def _tables(directory: Path) -> list[Path]:
    return [directory / f"{name}.csv" for name in (*TABLES, *TIMING_TABLES)]


def _figures(directory: Path) -> list[Path]:
    return [directory / f"{name}.svg" for name in FIGURES]
