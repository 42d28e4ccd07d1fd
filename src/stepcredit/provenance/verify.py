"""Artifacts against their manifests: bytes, code, settings, inputs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from stepcredit.provenance.digest import code_digest
from stepcredit.provenance.errors import UserError
from stepcredit.provenance.files import sha256
from stepcredit.provenance.findings import AuditContext, CurrentSettings, Finding, Verdict
from stepcredit.provenance.ledger import Ledger
from stepcredit.provenance.manifest import Code, Manifest
from stepcredit.provenance.versions import version_differences

DIFFERENCES_SHOWN = 3


class Verifier:
    """Compares what the intact manifests of a results directory say with what is there now.

    `notes` holds what could not be compared, once `findings` has run.
    """

    def __init__(
        self,
        context: AuditContext,
        ledger: Ledger,
        current_settings: CurrentSettings | None,
        package_root: Path,
        versions: Mapping[str, str],
    ) -> None:
        self.notes: list[str] = []
        self._context = context
        self._ledger = ledger
        self._current_settings = current_settings
        self._package_root = package_root
        self._versions = versions
        self._digests: dict[str, str] = {}

    def findings(self) -> list[Finding]:
        """A finding for each output that is not what its manifest says, or would not be made so today."""
        if self._current_settings is None:
            self.notes.append("settings were not compared: no configuration was given")
        return [
            finding
            for name, manifest in self._context.manifests.items()
            for finding in (*self._changed(manifest), *self._stale(name, manifest))
        ]

    def _changed(self, manifest: Manifest) -> Iterator[Finding]:
        for path, digest in manifest.outputs.items():
            problem = _bytes_problem(self._context.root / path, digest)
            if problem:
                yield Finding(path, *problem, self._context.remake(path))

    def _stale(self, name: str, manifest: Manifest) -> Iterator[Finding]:
        reasons: list[tuple[Verdict, str | None]] = [
            ("stale: code", self._code_problem(manifest.code)),
            ("stale: code", self._versions_problem(manifest)),
            ("stale: params", self._settings_problem(manifest)),
            *(("stale: input", self._input_problem(path, digest)) for path, digest in manifest.inputs.items()),
        ]
        for verdict, detail in reasons:
            if detail is not None:
                for path in manifest.outputs or (name,):
                    yield Finding(path, verdict, detail, self._context.remake(name))

    def _code_problem(self, code: Code) -> str | None:
        key = json.dumps([code.modules, code.data])
        if key not in self._digests:
            try:
                current = code_digest(*code.modules, data=code.data, package_root=self._package_root)
            except UserError as error:
                current = str(error)
            self._digests[key] = current
        if self._digests[key] == code.digest:
            return None
        return f"the code of {', '.join(code.modules)} was {code.digest}, is {self._digests[key]}"

    def _versions_problem(self, manifest: Manifest) -> str | None:
        for package in sorted(manifest.versions.keys() - self._versions.keys()):
            self._note(f"{package} is not installed here: its version was not compared")
        return "; ".join(version_differences(manifest.versions, self._versions)) or None

    def _settings_problem(self, manifest: Manifest) -> str | None:
        if self._current_settings is None:
            return None
        current = self._current_settings(manifest)
        if current is None:
            self._note(f"settings of {manifest.stage} were not compared")
            return None
        return _differences(manifest.settings, to_jsonable_python(current))

    def _input_problem(self, path: str, recorded: str) -> str | None:
        """Against the job that makes the input, so that a damaged file is laid to it alone; else the file."""
        maker = self._context.maker(path)
        if maker is not None:
            made = self._context.manifests[maker]
            return None if made.outputs[path] == recorded else f"{path} was made anew by {made.stage} since"
        if path in self._ledger.accounted:
            return None
        file = self._context.root / path
        if not file.exists():
            if path.startswith(("/", "../")):
                self._note(f"{path}: an input from outside the results that is not here, not compared")
                return None
            return f"{path} is gone, and nothing makes it"
        problem = _bytes_problem(file, recorded)
        return f"{path}: {problem[1]}" if problem else None

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def _bytes_problem(path: Path, recorded: str) -> tuple[Verdict, str] | None:
    """What keeps a file from having the recorded hash; None if it has it."""
    if not os.path.lexists(path):
        return "missing", "it is gone"
    if not path.exists():
        return "missing", "it is a link that leads nowhere"
    if not path.is_file():
        return "tampered", "it is a directory, not a file" if path.is_dir() else "it is not a regular file"
    try:
        found = sha256(path)
    except OSError as error:
        return "tampered", f"it cannot be read ({error.strerror})"
    return None if found == recorded else ("tampered", f"sha256 was {recorded[:12]}, is {found[:12]}")


def _differences(recorded: Mapping[str, Any], current: Mapping[str, Any]) -> str | None:
    """The keys whose values differ; None if none do."""
    old, new = _flat(recorded), _flat(current)
    keys = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    changes = [f"{key} was {old.get(key, 'unset')}, is {new.get(key, 'unset')}" for key in keys]
    if len(changes) > DIFFERENCES_SHOWN:
        changes[DIFFERENCES_SHOWN:] = [f"{len(changes) - DIFFERENCES_SHOWN} more"]
    return "; ".join(changes) or None


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Dotted keys and values as JSON."""
    flat: dict[str, str] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = json.dumps(value, sort_keys=True)
    return flat
