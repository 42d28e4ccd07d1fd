"""Files that are whole or absent, and their hashes."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A temporary name beside `path`, renamed to it on success and removed on failure.

    The temporary name keeps the suffix of `path`, so that writers that look at it do the right thing.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_directory(path: Path) -> Iterator[Path]:
    """A temporary directory beside `path` that takes its place on success and is removed on failure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    retired = temporary.with_name(f"{temporary.name}-old")
    try:
        yield temporary
        temporary.chmod(0o777 & ~_umask())
        if path.is_symlink():
            path.unlink()
        elif path.exists():
            path.replace(retired)
        temporary.replace(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(retired, ignore_errors=True)


def sha256(path: Path) -> str:
    """Hash of a file's bytes, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def files_under(directory: Path) -> list[Path]:
    """Every file below a directory, sorted, links followed, without hidden ones and Python's caches."""
    found: list[Path] = []
    for parent, directories, names in os.walk(directory, followlinks=True):
        directories[:] = [name for name in directories if not name.startswith(".") and name != "__pycache__"]
        found.extend(Path(parent, name) for name in names if not name.startswith("."))
    return sorted(found)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
