"""Files that are whole or absent, and their hashes."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from stepcredit.provenance.errors import UserError


@contextlib.contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A temporary name beside `path`, renamed to it on success and removed on failure.

    The temporary name keeps the suffix of `path`, so that writers that look at it do the right thing. What a
    killed process left of the same path is removed.

    Raises:
        UserError: there is a directory, a device or the like of that name.
    """
    if path.exists() and not path.is_file():
        kind = "a directory" if path.is_dir() else "no regular file"
        raise UserError(f"{path}: is {kind}, and a file is to be written there; move it away")
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(path.parent, path.stem, path.suffix)
    prefix = f".{path.stem}-{os.getpid()}-"
    handle, name = tempfile.mkstemp(prefix=prefix, suffix=path.suffix, dir=path.parent)
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
    """A temporary directory beside `path` that takes its place on success and is removed on failure.

    What a killed process left of the same path is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(path.parent, path.name, "")
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}-{os.getpid()}-", dir=path.parent))
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


def _remove_leftovers(directory: Path, stem: str, suffix: str) -> None:
    """Remove the temporary files of one name whose process is gone."""
    pattern = re.compile(rf"\.{re.escape(stem)}-(\d+)-\w{{8}}(-old)?{re.escape(suffix)}")
    for entry in list(directory.iterdir()):
        match = pattern.fullmatch(entry.name)
        if match is None or _runs(int(match[1])):
            continue
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
