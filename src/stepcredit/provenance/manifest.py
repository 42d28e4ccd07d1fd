"""`manifest.json`, which stands beside a stage's outputs: what was made, from what, by which code.

Two runs of one stage write the same manifest, apart from `volatile`. Paths are relative to the results
directory, so that it can be moved.
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from stepcredit.provenance.errors import UserError
from stepcredit.provenance.versions import Commit, Machine

MANIFEST_NAME = "manifest.json"
"""Name of a manifest; where one directory holds the outputs of several jobs, `{job}.manifest.json`."""
CONFIG_NAME = "config.yaml"
"""The merged configuration at the top of a results directory: what makes a directory one."""

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class ManifestError(UserError):
    """A manifest cannot be read, or does not follow its schema, or was edited."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Code(_Part):
    """The code of a stage, as `code_digest` takes it."""

    modules: list[str]
    data: list[str] = []
    digest: str


class Volatile(_Part):
    """What varies from run to run."""

    host: str
    platform: str
    machine: Machine
    started: str
    """UTC, ISO 8601."""
    seconds: float
    cpu_seconds: float
    """User and system time, finished child processes included."""
    peak_memory_mib: float
    """The most resident memory this process, or one finished child, has held."""
    command: str
    commit: Commit | None
    seal: str = ""
    """Hash of the rest of the manifest: an edit of it by accident shows."""


class Manifest(_Part):
    """What a stage made. Hashes are SHA-256; paths are relative to the results directory where inside it."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    stage: str
    root: str
    """The results directory, told from the manifest's own ("../..")."""
    inputs: dict[str, Sha256]
    outputs: dict[str, Sha256]
    settings: dict[str, Any]
    code: Code
    versions: dict[str, str]
    seed: int | None
    volatile: Volatile

    def to_json(self) -> str:
        """The text of the file: sorted keys, two spaces."""
        content = self.model_dump(mode="json", by_alias=True)
        return json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n"

    def sealed(self) -> Manifest:
        """The same manifest with the seal that fits its content."""
        unsealed = self.model_copy(update={"volatile": self.volatile.model_copy(update={"seal": ""})})
        seal = hashlib.sha256(unsealed.to_json().encode()).hexdigest()
        return self.model_copy(update={"volatile": self.volatile.model_copy(update={"seal": seal})})

    def told_from(self, directory: str) -> Manifest:
        """The same manifest with its paths told from where its own `directory` is told from."""
        prefix = posixpath.join(directory, self.root)

        def told(paths: dict[str, str]) -> dict[str, str]:
            return {posixpath.normpath(posixpath.join(prefix, path)): digest for path, digest in paths.items()}

        return self.model_copy(update={"inputs": told(self.inputs), "outputs": told(self.outputs)})

    def is_intact(self, text: bytes) -> bool:
        """Whether `text`, from which this manifest was parsed, is what `record` wrote, to the byte."""
        return self.sealed().to_json().encode() == text


def parse_manifest(text: bytes, source: str) -> Manifest:
    """Parse and validate the text of a manifest; the seal is left to `Manifest.is_intact`.

    Raises:
        ManifestError: it is not JSON, or does not follow the schema; the message begins with `source`.
    """
    try:
        return Manifest.model_validate(json.loads(text))
    except ValidationError as error:
        detail = error.errors()[0]
        key = ".".join(str(part) for part in detail["loc"]) or "top level"
        raise ManifestError(f"{source}: is not a manifest ({key}: {detail['msg']})") from None
    except (ValueError, RecursionError):
        raise ManifestError(f"{source}: is not a manifest (not JSON)") from None


def read_manifest(path: Path) -> Manifest:
    """Read a manifest and check its seal.

    Raises:
        ManifestError: it cannot be read, does not follow the schema, or was edited.
    """
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ManifestError(f"{path}: cannot be read ({error.strerror})") from None
    manifest = parse_manifest(text, str(path))
    if not manifest.is_intact(text):
        raise ManifestError(f"{path}: was edited after the stage wrote it; rerun the stage")
    return manifest


def results_directory(path: Path) -> Path:
    """The nearest directory above a file that holds a `config.yaml`; the file's own where there is none."""
    parent = Path(os.path.abspath(path)).parent
    return next((above for above in (parent, *parent.parents) if (above / CONFIG_NAME).is_file()), parent)


def recorded_path(path: Path, root: Path) -> str:
    """The name of a file in a manifest.

    Relative to the results directory `root` where inside it. Outside it, as the user named it: an absolute
    path stays absolute, a relative one is told from `root` ("../data.jsonl"). Links are not resolved.
    """
    absolute, top = Path(os.path.abspath(path)), Path(os.path.abspath(root))
    if absolute.is_relative_to(top):
        return absolute.relative_to(top).as_posix()
    return absolute.as_posix() if path.is_absolute() else Path(os.path.relpath(absolute, top)).as_posix()
