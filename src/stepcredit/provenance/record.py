"""Writing manifests: a stage's command wraps its work in `record`.

with record("train-rl", manifest, modules=["training.rl"], inputs=[model, puzzles], outputs=[metrics],
            settings=settings, seed=seed):
    train(...)
"""

from __future__ import annotations

import contextlib
import os
import platform
import resource
import shlex
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from stepcredit.provenance.digest import PACKAGE_ROOT, code_digest
from stepcredit.provenance.errors import UserError
from stepcredit.provenance.files import atomic_path, files_under, sha256
from stepcredit.provenance.formats import CHECKERS, format_problem
from stepcredit.provenance.manifest import Code, Manifest, Volatile, recorded_path, results_directory
from stepcredit.provenance.versions import commit_of, package_versions, this_machine


@dataclass
class Record:
    """The files of a stage that runs; a stage that learns of one on the way appends it.

    Files or directories; a directory stands for every file below it that is not hidden.
    """

    inputs: list[Path] = field(default_factory=list)
    outputs: list[Path] = field(default_factory=list)


@contextlib.contextmanager
def record(
    stage: str,
    manifest: Path,
    *,
    modules: Sequence[str],
    inputs: Iterable[Path] = (),
    outputs: Iterable[Path] = (),
    settings: BaseModel | Mapping[str, Any] | None = None,
    seed: int | None = None,
    data: Sequence[str] = (),
    root: Path | None = None,
) -> Iterator[Record]:
    """Write the manifest of the work done inside the `with`; an exception there leaves none.

    Args:
        stage: the stage's name, as on the command line.
        manifest: where it is written.
        modules: what the stage runs, as for `code_digest`.
        inputs: what it reads; hashed before the work begins.
        outputs: what it writes; hashed when the work is done.
        settings: the part of the configuration that it reads.
        seed: the seed of its random numbers, if it draws any.
        data: files of the package that its modules read, as for `code_digest`.
        root: the results directory; by default the nearest directory above the manifest that holds a
            `config.yaml`, or the manifest's own where there is none (a stage run by itself).

    Raises:
        UserError: an input does not exist or is damaged, or `modules` or `data` name none of the package's.
        FileNotFoundError: the work did not write an output.
    """
    top = results_directory(manifest) if root is None else root
    files = Record(list(inputs), list(outputs))
    _refuse_missing(files.inputs, stage)
    _refuse_damaged(files.inputs, stage)
    before = _hashes(files.inputs, top)
    given = len(files.inputs)
    code = Code(modules=list(modules), data=list(data), digest=code_digest(*modules, data=data))
    clock = _Clock()

    yield files

    volatile = clock.stop()
    absent = [str(path) for path in files.outputs if not path.exists()]
    if absent:
        raise FileNotFoundError(f"{stage}: ended without writing {', '.join(absent)}")
    written = Manifest(
        stage=stage,
        root=Path(os.path.relpath(top, manifest.parent)).as_posix(),
        inputs=before | _hashes(files.inputs[given:], top),
        outputs=_hashes(files.outputs, top),
        settings=to_jsonable_python({} if settings is None else settings),
        code=code,
        versions=package_versions(),
        seed=seed,
        volatile=volatile,
    )
    with atomic_path(manifest) as temporary:
        temporary.write_text(written.sealed().to_json(), encoding="utf-8")


def _refuse_missing(paths: Iterable[Path], stage: str) -> None:
    absent = [str(path) for path in paths if not path.exists()]
    if absent:
        raise UserError(f"{stage}: no such input: {', '.join(absent)}")


def _refuse_damaged(paths: Iterable[Path], stage: str) -> None:
    """A file that was cut off, or a directory in its place, is named before any work is done."""
    for path in paths:
        if path.is_dir() and path.suffix in CHECKERS:
            raise UserError(f"{stage}: the input {path} is a directory, not a file; move it away and make the file")
        for file in files_under(path) if path.is_dir() else [path]:
            problem = format_problem(file)
            if problem:
                raise UserError(
                    f"{stage}: the input {file} {problem}; make it again (`stepcredit audit` names the command)"
                )


def _hashes(paths: Iterable[Path], root: Path) -> dict[str, str]:
    files = {file for path in paths for file in (files_under(path) if path.is_dir() else [path])}
    return {recorded_path(file, root): sha256(file) for file in sorted(files)}


class _Clock:
    """Measures a stage from its making to `stop`."""

    def __init__(self) -> None:
        self._started = datetime.now(UTC)
        self._wall = time.perf_counter()
        self._cpu = _cpu_seconds()

    def stop(self) -> Volatile:
        return Volatile(
            host=platform.node(),
            platform=platform.platform(),
            machine=this_machine(),
            started=self._started.isoformat(timespec="seconds"),
            seconds=round(time.perf_counter() - self._wall, 3),
            cpu_seconds=round(_cpu_seconds() - self._cpu, 3),
            peak_memory_mib=round(_peak_memory_mib(), 1),
            command=shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
            commit=commit_of(PACKAGE_ROOT),
        )


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _peak_memory_mib() -> float:
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
