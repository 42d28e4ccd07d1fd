"""What lies below a results directory, and what its manifests say about it."""

from __future__ import annotations

import fnmatch
import os
import posixpath
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from stepcredit.provenance.findings import Finding, forced_run
from stepcredit.provenance.manifest import CONFIG_NAME, MANIFEST_NAME, Manifest, ManifestError, parse_manifest


@dataclass
class Tree:
    """The files of a results directory; paths relative to it.

    Attributes:
        files: those that a manifest must account for.
        manifests: the manifests.
        nested: directories that are results directories themselves, left alone.
        problems: directories that cannot be listed.
    """

    files: set[str] = field(default_factory=set)
    manifests: list[str] = field(default_factory=list)
    nested: list[str] = field(default_factory=list)
    problems: list[Finding] = field(default_factory=list)


def walk(root: Path, ignore: Sequence[str]) -> Tree:
    """List a results directory, without what matches a pattern of `ignore` ("logs/*": all below logs)."""
    tree = Tree()

    def unlisted(error: OSError) -> None:
        path = _relative(str(error.filename), root)
        detail = f"cannot be listed ({error.strerror})"
        tree.problems.append(Finding(path, "tampered", detail, f"chmod u+rwx {shlex.quote(error.filename)}"))

    for parent, directories, names in os.walk(root, followlinks=True, onerror=unlisted):
        here = _relative(parent, root)
        if here != "." and CONFIG_NAME in names:
            tree.nested.append(here)
            directories.clear()
            continue
        below = "" if here == "." else f"{here}/"
        directories[:] = sorted(name for name in directories if not _matches(f"{below}{name}/", ignore))
        for path in (f"{below}{name}" for name in sorted(names)):
            if _matches(path, ignore):
                continue
            if path.rpartition("/")[2] == MANIFEST_NAME or path.endswith(f".{MANIFEST_NAME}"):
                tree.manifests.append(path)
            else:
                tree.files.add(path)
    return tree


@dataclass
class Ledger:
    """The manifests of a results directory.

    Attributes:
        manifests: the intact ones, by path; their own paths are told from this results directory.
        accounted: the files that some manifest lists as an output, the damaged ones included.
        shadows: directories of damaged manifests: files there cannot be called orphans.
        problems: a finding for each damaged manifest.
    """

    manifests: dict[str, Manifest] = field(default_factory=dict)
    accounted: set[str] = field(default_factory=set)
    shadows: set[PurePosixPath] = field(default_factory=set)
    problems: list[Finding] = field(default_factory=list)

    def is_shadowed(self, path: str) -> bool:
        """Whether a damaged manifest beside or above a file may have accounted for it."""
        return not self.shadows.isdisjoint(PurePosixPath(path).parents)


def read_ledger(root: Path, tree: Tree, snakemake: str) -> Ledger:
    """Read every manifest of a results directory; a damaged one is a finding, not an error."""
    ledger = Ledger()

    def damage(name: str, detail: str) -> None:
        ledger.shadows.add(PurePosixPath(name).parent)
        ledger.problems.append(Finding(name, "tampered", detail, forced_run(snakemake, root / name)))

    for name in tree.manifests:
        try:
            text = (root / name).read_bytes()
            manifest = parse_manifest(text, "it")
        except ManifestError as error:
            damage(name, str(error))
        except OSError as error:
            damage(name, f"cannot be read ({error.strerror})")
        else:
            located = manifest.told_from(posixpath.dirname(name))
            ledger.accounted.update(located.outputs)
            if manifest.is_intact(text):
                ledger.manifests[name] = located
            else:
                damage(name, "was edited after its stage wrote it")
    return ledger


def _relative(path: str, root: Path) -> str:
    return Path(os.path.relpath(path, root)).as_posix()


def _matches(path: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)
