"""Taking over what another machine, or an older commit, has made: only what would be made the same here."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from stepcredit.provenance.audit import IGNORED
from stepcredit.provenance.errors import UserError
from stepcredit.provenance.files import atomic_path, sha256
from stepcredit.provenance.findings import AuditReport
from stepcredit.provenance.ledger import read_ledger, walk
from stepcredit.provenance.manifest import Manifest


@dataclass
class Adoption:
    """What became of each job of the source, by the path of its manifest.

    Attributes:
        adopted: its files were copied.
        present: the target has it already.
        refused: why it was not copied.
    """

    adopted: list[str] = field(default_factory=list)
    present: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


def adopt(source: Path, target: Path, report: AuditReport) -> Adoption:
    """Copy the files of every job of the results directory `source` that verifies and `target` lacks.

    A job verifies if the audit finds nothing against its outputs and `target` holds each of its inputs with the bytes
    that it read: adopted before it, or its own. Jobs are copied in the order of their inputs and the manifest last, so
    that Snakemake finds nothing to do.

    Args:
        report: the audit of `source` by this code in this environment, against the configuration of `target`.

    Raises:
        UserError: the two directories are one.
    """
    if source.resolve() == target.resolve():
        raise UserError(f"{source}: is where the files are to go; give the directory that they come from")
    ledger = read_ledger(source, walk(source, IGNORED), "")
    adoption = Adoption()
    faults = {artifact.manifest: artifact for artifact in report.artifacts if artifact.verdict != "ok"}
    details = {finding.path: finding.detail for finding in reversed(report.findings)}
    for problem in ledger.problems:
        adoption.refused[problem.path] = f"tampered: {problem.detail}"
    waiting: dict[str, Manifest] = {}
    for name, manifest in ledger.manifests.items():
        fault = faults.get(name)
        if fault is not None:
            adoption.refused[name] = f"{fault.path} is {fault.verdict}: {details[fault.path]}"
            continue
        reason = _other_bytes(manifest, target)
        if reason:
            adoption.refused[name] = reason
        elif (target / name).exists():
            adoption.present.append(name)
        else:
            waiting[name] = manifest
    while ready := [name for name, manifest in waiting.items() if _lacking(manifest, target) is None]:
        for name in ready:
            for path in (*waiting.pop(name).outputs, name):
                with atomic_path(target / path) as temporary:
                    shutil.copyfile(source / path, temporary)
            adoption.adopted.append(name)
    for name, manifest in waiting.items():
        adoption.refused[name] = f"its input {_lacking(manifest, target)} is not here with the bytes that it read"
    return adoption


def _other_bytes(manifest: Manifest, target: Path) -> str | None:
    """An output whose name is taken in `target` by something else."""
    for path, digest in manifest.outputs.items():
        if (target / path).exists() and not _holds(target / path, digest):
            return f"{target / path} is there with other bytes; it is left as it is"
    return None


def _lacking(manifest: Manifest, target: Path) -> str | None:
    """The first input that `target` does not hold as the job read it."""
    return next((path for path, digest in manifest.inputs.items() if not _holds(target / path, digest)), None)


def _holds(path: Path, digest: str) -> bool:
    return path.is_file() and sha256(path) == digest
