"""What an audit says: a verdict for each artifact, a finding for each thing that is wrong."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from pydantic import BaseModel

from stepcredit.provenance.manifest import Manifest

Verdict: TypeAlias = Literal[
    "missing", "tampered", "invalid", "orphan", "stale: input", "stale: params", "stale: code", "ok"
]

VERDICTS: dict[Verdict, str] = {
    "missing": "a stage recorded it, and it is gone",
    "tampered": "its bytes are not those that its stage wrote",
    "invalid": "its content breaks its schema or a rule of the experiment",
    "orphan": "no manifest accounts for it",
    "stale: input": "made from an input that has changed since",
    "stale: params": "made with other settings than the configuration's",
    "stale: code": "made by other code, or with other package versions, than today's",
    "ok": "as its stage wrote it, by this code, from these inputs and settings",
}
"""What each verdict means, the worst first."""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        path: the file, relative to the results directory.
        verdict: any but "ok".
        detail: what was found, against what was expected.
        repair: the command that mends it.
    """

    path: str
    verdict: Verdict
    detail: str
    repair: str


@dataclass(frozen=True)
class Artifact:
    """A file that a stage made.

    Attributes:
        path: relative to the results directory, as is `manifest`.
        stage: the stage that made it.
        seed: the stage's seed, if it has one.
        manifest: where that is recorded.
        sha256: the recorded hash.
        size: bytes now; None where there is no such file.
        verdict: the worst of its findings'.
        remake: the command that makes it anew.
    """

    path: str
    stage: str
    seed: int | None
    manifest: str
    sha256: str
    size: int | None
    verdict: Verdict
    remake: str


@dataclass(frozen=True)
class AuditReport:
    """The result of an audit.

    Attributes:
        directory: the results directory, as it was named.
        artifacts: what the manifests account for, by path.
        findings: what is wrong, the worst first.
        notes: what was not checked, and why.
        manifests: how many were read.
        seconds: how long it took.
    """

    directory: str
    artifacts: Sequence[Artifact]
    findings: Sequence[Finding]
    notes: Sequence[str]
    manifests: int
    seconds: float

    @property
    def verdict(self) -> Literal["ok", "failed"]:
        """ "ok" only if nothing was found."""
        return "failed" if self.findings else "ok"

    def to_json(self) -> str:
        """The report as a JSON object with the keys "verdict", "artifacts", "findings" and the rest."""
        return json.dumps({"verdict": self.verdict, **asdict(self)}, indent=2)


@dataclass(frozen=True)
class AuditContext:
    """What a check may look at.

    Attributes:
        root: the results directory.
        manifests: the intact ones, by their path relative to `root`; so are the paths in them.
        config: the configuration to hold the results against, as plain values; empty where there is none.
        snakemake: how the workflow is called, for repairs.
        broken: files already known to be gone, changed or unreadable: a check leaves them alone.
    """

    root: Path
    manifests: Mapping[str, Manifest]
    config: Mapping[str, Any]
    snakemake: str
    broken: frozenset[str] = frozenset()
    _makers: Mapping[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        makers = {path: name for name, manifest in self.manifests.items() for path in manifest.outputs}
        object.__setattr__(self, "_makers", makers)

    def maker(self, path: str) -> str | None:
        """The manifest that lists a file among its outputs."""
        return self._makers.get(path)

    def readable(self, *paths: str) -> bool:
        """Whether all of these files exist and nothing is known against them."""
        return all(path not in self.broken and (self.root / path).is_file() for path in paths)

    def remake(self, path: str) -> str:
        """The command that makes a file anew: it forces the job that declares the manifest beside it."""
        return forced_run(self.snakemake, self.root / (self.maker(path) or path))

    def invalid(self, path: str, detail: str) -> Finding:
        """A finding about the content of a file."""
        return Finding(path, "invalid", detail, self.remake(path))


def forced_run(snakemake: str, output: Path) -> str:
    """The command that runs the job of an output again, whatever Snakemake thinks of it."""
    return f"{snakemake} --forcerun {shlex.quote(output.as_posix())}"


class AuditCheck(Protocol):
    """A further check: reads what it needs below `context.root`, returns a finding for each thing wrong.

    An exception that escapes it becomes a finding of its own.
    """

    def __call__(self, context: AuditContext, /) -> Iterable[Finding]: ...


class CurrentSettings(Protocol):
    """What the active configuration gives a manifest's job, as `record` took it; None: do not compare."""

    def __call__(self, manifest: Manifest, /) -> BaseModel | Mapping[str, Any] | None: ...
