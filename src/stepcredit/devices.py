"""GPUs, each claimed by one process at a time.

Snakemake counts GPUs and hands out none: jobs that start together would all take the first. So a job locks the devices
it computes on, by a file each, and shows itself no others. The lock is the kernel's (flock): it goes when its process
does, however that ends.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from stepcredit.provenance.errors import UserError

VISIBLE = "CUDA_VISIBLE_DEVICES"
LOCKS = "STEPCREDIT_DEVICE_LOCKS"
_QUERY = ("nvidia-smi", "--query-gpu=index,uuid,memory.total", "--format=csv,noheader,nounits")

_held: list[IO[str]] = []
"""Open lock files of this process: what keeps its devices."""


@dataclass(frozen=True)
class Device:
    """A GPU.

    Attributes:
        name: what `CUDA_VISIBLE_DEVICES` calls it.
        key: what it is the same device by, whatever a job's container or cgroup calls it.
        memory_mib: its memory; None where nobody tells.
    """

    name: str
    key: str
    memory_mib: int | None = None


def visible_devices() -> list[Device]:
    """The GPUs that this process may use: those that a scheduler left visible, else all that the driver lists."""
    listed = _listed()
    names = os.environ.get(VISIBLE)
    if names is None:
        return listed
    known = {name: device for device in listed for name in (device.name, device.key)}
    wanted = [name.strip() for name in names.split(",") if name.strip() not in ("", "-1", "NoDevFiles")]
    return [
        Device(name, known[name].key, known[name].memory_mib) if name in known else Device(name, name)
        for name in wanted
    ]


def lock_directory() -> Path:
    """Where the lock files are: of this machine and user, or where STEPCREDIT_DEVICE_LOCKS says."""
    return Path(os.environ.get(LOCKS) or Path(tempfile.gettempdir(), f"stepcredit-devices-{os.getuid()}"))


def claim_devices(count: int = 1, *, poll: float = 1.0, report_every: float = 60.0) -> list[Device]:
    """Claim `count` GPUs until this process ends, and show it no others; waits while others hold them.

    To be called before CUDA is initialised, once a process.

    Args:
        poll: seconds between two attempts.
        report_every: seconds between two lines on standard error that say what is waited for.

    Raises:
        UserError: this machine, or what the scheduler gave of it, has fewer GPUs.
    """
    devices = visible_devices()
    if len(devices) < count:
        raise UserError(
            f"this job needs {count} GPU{'s' * (count > 1)}, and it sees {len(devices)}"
            f" ({VISIBLE} is {os.environ.get(VISIBLE, 'not set')}): run it where there are more,"
            " or set sft.device and rl.device to cpu"
        )
    directory = lock_directory()
    directory.mkdir(parents=True, exist_ok=True)
    started, reports = time.monotonic(), 0
    while not (claimed := _try(devices, count, directory)):
        if time.monotonic() - started >= reports * report_every:
            reports += 1
            print(
                f"waiting for {count} of {len(devices)} GPUs, held by {_holders(devices, directory)}", file=sys.stderr
            )
        time.sleep(poll)
    os.environ[VISIBLE] = ",".join(device.name for device in claimed)
    return claimed


def _try(devices: Sequence[Device], count: int, directory: Path) -> list[Device]:
    """`count` devices with their locks, or none with no lock: two that each hold half would wait for each other."""
    claimed: list[Device] = []
    locks: list[IO[str]] = []
    for device in devices:
        lock: IO[str] = _lock_file(device, directory).open("a", encoding="utf-8")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            continue
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        claimed.append(device)
        locks.append(lock)
        if len(claimed) == count:
            _held.extend(locks)
            return claimed
    for taken in locks:
        taken.close()
    return []


def _lock_file(device: Device, directory: Path) -> Path:
    return directory / f"{device.key.replace('/', '-')}.lock"


def _holders(devices: Sequence[Device], directory: Path) -> str:
    """The processes that hold them, as their lock files tell."""
    found = {_lock_file(device, directory).read_text(encoding="utf-8").strip() for device in devices}
    return ", ".join(f"process {process}" for process in sorted(found) if process) or "others"


def _listed() -> list[Device]:
    """What the driver lists; nothing where there is none."""
    try:
        done = subprocess.run(_QUERY, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return []
    rows = [[part.strip() for part in line.split(",")] for line in done.stdout.splitlines() if line.count(",") == 2]
    return [Device(index, uuid, int(memory) if memory.isdigit() else None) for index, uuid, memory in rows]
