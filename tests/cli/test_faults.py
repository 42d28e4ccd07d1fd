"""Commands on a machine that fails them: one sentence, nothing lost, no half file, and the next run continues."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stepcredit.cli import faults
from stepcredit.settings.data import DataSettings

STEPCREDIT = [sys.executable, "-c", "from stepcredit.cli import main; main()"]
GOOD = {"nums": [3, 5, 2], "target": 16, "completion": "<reasoning></reasoning><solution>(3+5)*2</solution>"}
TRACE = {"nums": [3, 5, 2], "target": 16, "response": "Three and five.\n\n<answer>(3+5)*2</answer>"}
DATA = DataSettings.model_validate({"synthetic": {"demonstrations": 400}, "splits": {"validation": 50, "heldout": 100}})
CONFIG = Path(__file__).parents[2] / "config/config.yaml"
NO_PREPARATION: Callable[[], None] | None = None


def call(*arguments: object, preexec: Callable[[], None] | None = NO_PREPARATION, **more: Any) -> Any:
    command = [*STEPCREDIT, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, preexec_fn=preexec, timeout=300, **more)


def said(done: subprocess.CompletedProcess[str], status: int = 3) -> str:
    """The one line that a command said when it failed."""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("stepcredit: ")
    assert done.returncode == status
    return lines[0]


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.rglob("*")}


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    path = tmp_path / "traces.jsonl"
    path.write_text((json.dumps(TRACE) + "\n") * 2000)
    return path


def clean(source: Path, out: Path, **more: Any) -> Any:
    return call("clean", "--in", source, "--out", out, "--funnel", out.with_suffix(".csv"), **more)


# -- no room -----------------------------------------------------------------------------------------------


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(place)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_leaves_no_half_file_and_the_next_run_continues(traces: Path, full_disk: Path) -> None:
    ballast = full_disk / "ballast"
    ballast.write_bytes(bytes(60 * 1024))
    out = full_disk / "clean.jsonl"
    assert "no space is left on the device: free some; nothing half-written is left" in said(clean(traces, out))
    assert names(full_disk) == {"ballast"}
    ballast.unlink()
    traces.write_text(json.dumps(TRACE) + "\n")
    assert clean(traces, out).returncode == 0
    assert names(full_disk) == {"clean.jsonl", "clean.csv"}


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_a_limit_on_files_is_a_sentence_and_keeps_the_old_file(tmp_path: Path, traces: Path, suffix: str) -> None:
    out = tmp_path / f"clean.{suffix}"
    out.write_text("old")
    limit = 100

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    assert "the limit on the size of a file is reached" in said(clean(traces, out, preexec=small_files))
    assert out.read_text() == "old"
    assert names(tmp_path) == {"traces.jsonl", out.name}


def test_a_full_standard_output_is_a_sentence(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text(json.dumps(GOOD) + "\n")
    with Path("/dev/full").open("wb") as full:
        command = [*STEPCREDIT, "grade", "--in", str(source), "--out", "-"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode != 0
    assert "stepcredit: no space is left on the device" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("mebibytes", [900, 3000], ids=["the libraries do not fit", "the rows do not fit"])
def test_too_little_memory_is_a_sentence(tmp_path: Path, mebibytes: int) -> None:
    rows, length = 40, 25_000_000
    source = tmp_path / "traces.parquet"
    table = pa.table({"query": ["q"] * rows, "response": pa.array(["a" * length]).take(pa.array([0] * rows))})
    pq.write_table(table, source)

    def little_memory() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (mebibytes * 2**20,) * 2)

    done = clean(source, tmp_path / "clean.jsonl", preexec=little_memory)
    assert "stepcredit: out of memory: free some, or run fewer jobs at once" in done.stderr, done.stderr[-2000:]
    assert "Traceback" not in done.stderr
    assert names(tmp_path) == {"traces.parquet"}


# -- no way in ---------------------------------------------------------------------------------------------


def as_anybody() -> None:
    """Without the rights over files that root has: PR_CAPBSET_DROP of CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH."""
    if os.getuid() == 0:
        for capability in (1, 2):
            ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)


def test_an_unwritable_directory_is_a_sentence(tmp_path: Path, traces: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    place.chmod(0o555)
    message = said(clean(traces, place / "clean.jsonl", preexec=as_anybody))
    assert str(place) in message
    assert "Permission denied: make it writable for this user" in message
    place.chmod(0o755)
    assert clean(traces, place / "clean.jsonl").returncode == 0


@pytest.mark.parametrize("place", ["clean.jsonl", "clean.csv"])
def test_a_directory_in_the_place_of_an_output_is_left_and_named(tmp_path: Path, traces: Path, place: str) -> None:
    (tmp_path / place / "inside").mkdir(parents=True)
    message = said(clean(traces, tmp_path / "clean.jsonl"), status=2)
    assert f"{tmp_path / place}: is a directory, and a file is to be written there; move it away" in message
    assert (tmp_path / place / "inside").is_dir()


def test_a_device_is_never_replaced_by_a_file(traces: Path) -> None:
    assert "is no regular file" in said(call("grade", "--in", traces, "--out", "/dev/full"), status=2)
    assert Path("/dev/full").is_char_device()


# -- what was cut off --------------------------------------------------------------------------------------


def split(source: Path, out: Path) -> Any:
    settings = DATA.canonical_json()
    return call("split", "--settings", settings, "--clean", source, "--out-dir", out, "--manifest", out / "m.json")


def test_a_truncated_table_is_named_and_can_be_made_again(tmp_path: Path) -> None:
    raw, table = tmp_path / "raw.parquet", tmp_path / "clean.parquet"
    arguments = ("--settings", DATA.canonical_json(), "--out", raw, "--manifest", tmp_path / "raw.json")
    assert call("ingest", *arguments).returncode == 0
    assert clean(raw, table).returncode == 0
    whole = table.read_bytes()
    table.write_bytes(whole[:-20])
    message = said(split(table, tmp_path / "splits"), status=2)
    assert f"split: the input {table} cannot be read as parquet" in message
    assert not (tmp_path / "splits").exists()
    assert clean(raw, table).returncode == 0
    assert table.read_bytes() == whole
    assert split(table, tmp_path / "splits").returncode == 0


def test_a_directory_in_the_place_of_an_input_is_named(tmp_path: Path) -> None:
    (tmp_path / "clean.parquet").mkdir()
    message = said(split(tmp_path / "clean.parquet", tmp_path / "splits"), status=2)
    assert "clean.parquet is a directory, not a file" in message


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("model.safetensors", b"\x40\0\0\0\0\0\0\0{", "cannot be read as safetensors: the header is cut off"),
        ("config.json", b'{"model_type": "qw', "cannot be read as json"),
    ],
)
def test_a_truncated_checkpoint_is_named_before_any_engine_starts(
    tmp_path: Path, name: str, content: bytes, expected: str
) -> None:
    from stepcredit.config_files import load_config
    from stepcredit.jobs import evaluation_job

    (tmp_path / "model").mkdir()
    (tmp_path / "model" / name).write_bytes(content)
    pq.write_table(pa.table({"nums": [[1, 2]], "target": [3]}), tmp_path / "puzzles.parquet")
    done = call(
        "evaluate",
        *("--settings", evaluation_job(load_config(CONFIG)).canonical_json()),
        *("--model", tmp_path / "model"),
        *("--puzzles", tmp_path / "puzzles.parquet"),
        *("--out", tmp_path / "out.parquet"),
        *("--manifest", tmp_path / "out.json"),
    )
    assert done.returncode == 2, done.stderr
    assert f"stepcredit: evaluate: the input {tmp_path / 'model' / name} {expected}" in done.stderr
    assert "Traceback" not in done.stderr


# -- signals -----------------------------------------------------------------------------------------------


@pytest.fixture
def grading(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A command in the middle of its work: it has graded two rows, and waits for more."""
    command = [*STEPCREDIT, "grade", "--in", "-", "--out", str(tmp_path / "out.jsonl")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write((json.dumps(GOOD) + "\n").encode() * 2)
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while not names(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(names(tmp_path)) == 1, "it did not begin to write"
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_a_sentence_and_leaves_nothing(
    tmp_path: Path, grading: subprocess.Popen[bytes], number: signal.Signals
) -> None:
    grading.send_signal(number)
    _, errors = grading.communicate(timeout=60)
    assert errors.decode().splitlines() == [f"stepcredit: stopped by {number.name}; {faults.AGAIN}"]
    assert grading.returncode == 128 + number
    assert names(tmp_path) == set()


def test_what_a_killed_command_left_is_removed_by_the_next(tmp_path: Path, grading: subprocess.Popen[bytes]) -> None:
    grading.kill()
    grading.wait()
    (left,) = names(tmp_path)
    assert left != "out.jsonl"
    done = call("grade", "--in", "-", "--out", tmp_path / "out.jsonl", input=json.dumps(GOOD) + "\n")
    assert done.returncode == 0, done.stderr
    assert names(tmp_path) == {"out.jsonl"}


def test_what_another_running_command_writes_is_left_alone(tmp_path: Path, grading: subprocess.Popen[bytes]) -> None:
    assert call("grade", "--in", "-", "--out", tmp_path / "out.jsonl", input="").returncode == 0
    assert len(names(tmp_path)) == 2
    grading.communicate(timeout=60)
    assert grading.returncode == 0
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 2


# -- what is no fault of the machine -------------------------------------------------------------------------


@pytest.mark.parametrize("error", [FileNotFoundError("gone"), RuntimeError("a bug"), KeyError("no")])
def test_a_mistake_of_ours_keeps_its_traceback(error: Exception) -> None:
    assert faults.sentence(error) is None
