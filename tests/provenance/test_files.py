from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stepcredit.provenance.files import atomic_directory, atomic_path, files_under, sha256


def test_a_failed_writer_leaves_the_old_file_and_nothing_else(tmp_path: Path):
    path = tmp_path / "a" / "table.csv"
    with atomic_path(path) as temporary:
        assert temporary.parent == path.parent
        assert temporary.suffix == ".csv"
        temporary.write_text("old")
    with pytest.raises(ZeroDivisionError):
        write_half_a_file(path)
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


def test_a_file_appears_under_its_name_only_when_it_is_whole(tmp_path: Path):
    with atomic_path(tmp_path / "x") as temporary:
        temporary.write_text("whole")
        assert not (tmp_path / "x").exists()
    assert (tmp_path / "x").read_text() == "whole"
    assert (tmp_path / "x").stat().st_mode & 0o400


def test_a_directory_takes_the_place_of_the_old_one_or_leaves_it(tmp_path: Path):
    path = tmp_path / "model"
    with atomic_directory(path) as temporary:
        (temporary / "old").touch()
    with pytest.raises(ZeroDivisionError):
        write_half_a_directory(path)
    assert [file.name for file in path.iterdir()] == ["old"]
    with atomic_directory(path) as temporary:
        (temporary / "new").touch()
    assert [file.name for file in path.iterdir()] == ["new"]
    assert list(tmp_path.iterdir()) == [path]


def test_sha256_is_that_of_the_bytes(tmp_path: Path):
    path = tmp_path / "x"
    path.write_bytes(b"abc" * 1_000_000)
    assert sha256(path) == hashlib.sha256(b"abc" * 1_000_000).hexdigest()


def test_files_under_follows_links_and_leaves_hidden_files_and_caches(tmp_path: Path):
    for name in ("b", "a/c", ".hidden", ".cache/d", "__pycache__/e"):
        (tmp_path / "top" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "top" / name).touch()
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "f").touch()
    (tmp_path / "top" / "linked").symlink_to(tmp_path / "state")
    found = [path.relative_to(tmp_path / "top").as_posix() for path in files_under(tmp_path / "top")]
    assert found == ["a/c", "b", "linked/f"]


def write_half_a_file(path: Path) -> None:
    with atomic_path(path) as temporary:
        temporary.write_text("half")
        raise ZeroDivisionError


def write_half_a_directory(path: Path) -> None:
    with atomic_directory(path) as temporary:
        (temporary / "half").touch()
        raise ZeroDivisionError


def test_what_a_killed_process_left_of_a_path_is_removed_and_nothing_else(tmp_path: Path):
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    dead, live = gone.stdout.strip(), os.getpid()
    left = [f".table-{dead}-abcd1234.csv", f".state-{dead}-abcd1234", f".state-{dead}-abcd1234-old"]
    kept = [
        f".table-{live}-abcd1234.csv",
        f".table-{dead}-abcd1234.json",
        f".tables-{dead}-abcd1234.csv",
        f".table-{dead}-notes.csv",
    ]
    for name in (*left[:1], *kept):
        (tmp_path / name).write_text("half")
    for name in left[1:]:
        (tmp_path / name / "inside").mkdir(parents=True)
    with atomic_path(tmp_path / "table.csv") as temporary:
        temporary.write_text("whole")
    with atomic_directory(tmp_path / "state"):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {"table.csv", "state", *kept}
