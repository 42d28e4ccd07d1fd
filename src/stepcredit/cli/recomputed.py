"""The audit makes the tables again: hashes show that a number has not changed since, not that it was ever computed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from stepcredit.provenance.digest import code_digest
from stepcredit.provenance.files import sha256
from stepcredit.provenance.findings import AuditContext, Finding
from stepcredit.provenance.manifest import MANIFEST_NAME

TABLES = f"tables/{MANIFEST_NAME}"


def check_tables(context: AuditContext) -> Iterator[Finding]:
    """A finding for each table that differs from what the raw files give with the recorded settings.

    Says nothing where a file that it needs is broken, or where the code of the tables has changed since: both
    have a finding of their own.
    """
    manifest = context.manifests.get(TABLES)
    if manifest is None or not context.readable(*manifest.inputs, *manifest.outputs):
        return
    if code_digest(*manifest.code.modules, data=manifest.code.data) != manifest.code.digest:
        return
    from stepcredit.reporting.settings import TablesSettings
    from stepcredit.reporting.tables import write_tables

    with tempfile.TemporaryDirectory(prefix="stepcredit-audit-") as scratch:
        write_tables(context.root, TablesSettings.model_validate(manifest.settings), Path(scratch))
        for path, digest in manifest.outputs.items():
            again = Path(scratch, Path(path).name)
            if not again.is_file() or sha256(again) != digest:
                yield context.invalid(path, "its numbers do not follow from the raw files: made again, they are others")
