"""The audit: recompute every hash below a results directory and compare it with the manifests.

An audit catches accidents (a file edited, cut off, left over, made by other code), not a forger: who edits a
file can write a manifest that fits.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from stepcredit.provenance.checks import BUILT_IN, check_formats, run_check
from stepcredit.provenance.digest import PACKAGE_ROOT
from stepcredit.provenance.errors import UserError
from stepcredit.provenance.findings import (
    VERDICTS,
    Artifact,
    AuditCheck,
    AuditContext,
    AuditReport,
    CurrentSettings,
    Finding,
    Verdict,
)
from stepcredit.provenance.ledger import Ledger, Tree, read_ledger, walk
from stepcredit.provenance.manifest import CONFIG_NAME
from stepcredit.provenance.verify import Verifier
from stepcredit.provenance.versions import package_versions

IGNORED = (
    "logs/*",
    "benchmarks/*",
    "state/*",
    ".snakemake/*",
    "*/.snakemake/*",
    "*.snakemake_timestamp",
    "*.log",
    "README.md",
    "data/croissant.json",
    CONFIG_NAME,
)
"""Patterns of paths that no manifest accounts for: what Snakemake and resumable jobs keep, and descriptions."""


UNREADABLE: tuple[Verdict, ...] = ("missing", "tampered", "invalid")
"""Verdicts on files that no further check reads."""


def audit(
    directory: Path,
    *,
    current_settings: CurrentSettings | None = None,
    checks: Sequence[AuditCheck] = (),
    config: Mapping[str, Any] | None = None,
    snakemake: str = "snakemake --cores all",
    ignore: Sequence[str] = IGNORED,
    package_root: Path | None = None,
    versions: Mapping[str, str] | None = None,
) -> AuditReport:
    """Audit a results directory.

    Args:
        directory: the results directory.
        current_settings: what the active configuration gives a manifest's job; without it, settings are not
            compared.
        checks: further checks of content, from the floors above.
        config: the active configuration as plain values, for the sizes that files should have.
        snakemake: how the workflow is called, for the repairs.
        ignore: patterns of paths that need no manifest.
        package_root: the package whose code is compared; by default stepcredit itself.
        versions: of Python and the packages, as a manifest records them; by default those of this environment.

    Raises:
        UserError: there is no such directory.
    """
    started = time.perf_counter()
    if not directory.is_dir():
        raise UserError(f"{directory}: no such results directory; the workflow makes it: {snakemake}")
    tree = walk(directory, ignore)
    ledger = read_ledger(directory, tree, snakemake)
    context = AuditContext(directory, ledger.manifests, config or {}, snakemake)
    here = package_versions() if versions is None else versions
    verifier = Verifier(context, ledger, current_settings, package_root or PACKAGE_ROOT, here)
    findings = [*tree.problems, *ledger.problems, *verifier.findings(), *_orphans(tree, ledger, context)]
    if not tree.manifests:
        findings.append(Finding(".", "missing", "holds no manifest: nothing was made here", snakemake))
    for check in (check_formats, *BUILT_IN, *checks):
        broken = frozenset(finding.path for finding in findings if finding.verdict in UNREADABLE)
        findings += run_check(check, replace(context, broken=broken))
    severity = list(VERDICTS)
    findings.sort(key=lambda finding: (severity.index(finding.verdict), finding.path, finding.detail))
    return AuditReport(
        directory=directory.as_posix(),
        artifacts=_artifacts(context, findings),
        findings=findings,
        notes=[*_nested_notes(tree), *verifier.notes],
        manifests=len(tree.manifests),
        seconds=round(time.perf_counter() - started, 3),
    )


def _orphans(tree: Tree, ledger: Ledger, context: AuditContext) -> Iterator[Finding]:
    for path in sorted(tree.files - ledger.accounted):
        if not ledger.is_shadowed(path):
            command = f"rm {shlex.quote((context.root / path).as_posix())}"
            yield Finding(path, "orphan", "no manifest accounts for it", command)


def _artifacts(context: AuditContext, findings: Sequence[Finding]) -> list[Artifact]:
    """What the manifests account for, with the first of its `findings` as verdict: the worst comes first."""
    worst: dict[str, Verdict] = {}
    for finding in findings:
        worst.setdefault(finding.path, finding.verdict)
    artifacts = [
        Artifact(
            path=path,
            stage=manifest.stage,
            seed=manifest.seed,
            manifest=name,
            sha256=digest,
            size=_size(context.root / path),
            verdict=worst.get(path, "ok"),
            remake=context.remake(path),
        )
        for name, manifest in context.manifests.items()
        for path, digest in manifest.outputs.items()
    ]
    return sorted(artifacts, key=lambda artifact: artifact.path)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _nested_notes(tree: Tree) -> list[str]:
    return [f"{path}: a results directory of its own, audit it by itself" for path in tree.nested]
