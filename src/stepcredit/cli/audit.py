"""`stepcredit audit`: is everything below a results directory what its manifests say?"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stepcredit.cli.recomputed import check_tables

if TYPE_CHECKING:
    from pydantic import BaseModel

    from stepcredit.config import Config
    from stepcredit.provenance.findings import AuditCheck, AuditContext, AuditReport, Finding
    from stepcredit.provenance.manifest import Manifest

EXTRA_CHECKS: tuple[AuditCheck, ...] = (check_tables,)
"""Checks of content that need the floors above provenance."""

FILES_SHOWN = 10
DEFAULT_COMMAND = "snakemake --cores all"

commands = typer.Typer()


@commands.command("audit")
def audit_command(
    directory: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="The results directory.", show_default=True)
    ] = Path("results"),
    config: Annotated[
        Path | None,
        typer.Option(help="Configuration to hold the results against.  [default: DIR/config.yaml]"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a program.")] = False,
) -> None:
    """Recompute every hash and compare it with the manifests; exit 0 only if all is well."""
    report = audit_directory(directory, config)
    typer.echo(report.to_json() if as_json else "\n".join(describe(report)))
    if report.verdict != "ok":
        raise typer.Exit(1)


def audit_directory(directory: Path, config: Path | None = None) -> AuditReport:
    """Audit a results directory with every check there is.

    Raises:
        UserError: there is no such directory, or `config` is wrong.
    """
    from stepcredit.config import Config
    from stepcredit.config_files import load_config
    from stepcredit.provenance.audit import audit
    from stepcredit.provenance.errors import UserError
    from stepcredit.provenance.manifest import CONFIG_NAME

    beside = directory / CONFIG_NAME
    active = None
    checks: list[AuditCheck] = list(EXTRA_CHECKS)
    try:
        if config is not None or beside.exists():
            active = load_config(beside if config is None else config)
    except ValueError as error:
        if config is not None:
            raise UserError(str(error)) from None
        checks.append(_wrong_config(str(error)))
    standard = active is None or active.outdir == Config.model_fields["outdir"].default
    file = config if config is not None or standard else beside
    return audit(
        directory,
        current_settings=None if active is None else _current_settings(active),
        checks=checks,
        config=None if active is None else active.model_dump(mode="json"),
        snakemake=DEFAULT_COMMAND if file is None else f"{DEFAULT_COMMAND} --configfile {file}",
    )


def _current_settings(config: Config) -> Callable[[Manifest], BaseModel | Mapping[str, Any] | None]:
    from stepcredit.cli.active_settings import STAGE_SETTINGS

    def settings(manifest: Manifest) -> BaseModel | Mapping[str, Any] | None:
        stage = STAGE_SETTINGS.get(manifest.stage)
        return None if stage is None else stage(config, manifest)

    return settings


def _wrong_config(message: str) -> AuditCheck:
    def check_config(context: AuditContext) -> Iterator[Finding]:
        from stepcredit.provenance.findings import Finding
        from stepcredit.provenance.manifest import CONFIG_NAME

        yield Finding(CONFIG_NAME, "invalid", message, context.snakemake)

    return check_config


# -- the report for a person --------------------------------------------------------------------------------


def describe(report: AuditReport) -> Iterator[str]:
    """The lines of the report: one if all is well, else the findings by what was found and what mends it."""
    size = sum(artifact.size or 0 for artifact in report.artifacts) / 2**20
    scope = f"{len(report.artifacts)} artifacts of {report.manifests} manifests, {size:,.1f} MiB"
    if report.verdict == "ok":
        yield f"{report.directory}: all is well ({scope}, {report.seconds:.1f} s)"
    else:
        files = len({finding.path for finding in report.findings})
        yield f"{report.directory}: {len(report.findings)} findings on {files} files ({scope})"
        yield from _describe_findings(report.findings)
    for note in report.notes:
        yield f"note: {_printable(note)}"


def _describe_findings(findings: Any) -> Iterator[str]:
    from stepcredit.provenance.findings import VERDICTS

    for verdict, found in itertools.groupby(findings, key=lambda finding: finding.verdict):
        same = list(found)
        yield f"\n{verdict} ({len(same)}): {VERDICTS[verdict]}"
        groups: dict[tuple[str, str], list[str]] = {}
        for finding in same:
            groups.setdefault((finding.detail, finding.repair), []).append(finding.path)
        for (detail, repair), paths in groups.items():
            yield from (f"  {_printable(path)}" for path in paths[:FILES_SHOWN])
            if len(paths) > FILES_SHOWN:
                yield f"  and {len(paths) - FILES_SHOWN} more (--json names them all)"
            yield f"    {_printable(detail)}"
            yield f"    repair: {_printable(repair)}"


def _printable(text: str) -> str:
    """File names need not be Unicode: what is not is written as an escape."""
    return text.encode("utf-8", "backslashreplace").decode()
