"""What the machine does to a command (no space, no memory, no permission, a signal), in one sentence.

Every file is written under a temporary name and training keeps its newest state, so a command that fails here
loses nothing and the same command continues; the sentence says so.
"""

from __future__ import annotations

import errno
import os
import signal
from types import FrameType

AGAIN = "nothing half-written is left; then run the same command again, which continues"

_DISK = {
    errno.ENOSPC: "no space is left on the device",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the limit on the size of a file is reached",
}
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
_WRONG_KIND = {
    errno.EISDIR: "is a directory where a file should be",
    errno.ENOTDIR: "is a file where a directory should be, or lies below one",
}
_NO_MEMORY = (
    "can't allocate memory",  # torch on a CPU
    "CUDA out of memory",
    "Cannot allocate memory",  # the system
    "failed to map segment from shared object",  # a library that no longer fits
)
_DISK_TEXT = "No space left on device"


def sentence(error: Exception) -> str | None:
    """What happened and what to do; None for an error that is none of the machine's."""
    if isinstance(error, MemoryError) or any(sign in str(error) for sign in _NO_MEMORY):
        return f"out of memory: free some, or run fewer jobs at once (docs/troubleshooting.md); {AGAIN}"
    if isinstance(error, OSError):
        return _of_the_system(error)
    if _DISK_TEXT in str(error):  # safetensors has an exception of its own
        return f"{_DISK[errno.ENOSPC]}: free some; {AGAIN}"
    return None


def _of_the_system(error: OSError) -> str | None:
    where = f"{error.filename}: " if error.filename else ""
    if error.errno in _DISK:
        return f"{where}{_DISK[error.errno]}: free some; {AGAIN}"
    if error.errno in _FORBIDDEN:
        return f"{where}{os.strerror(error.errno)}: make it writable for this user, or choose another place; {AGAIN}"
    if error.errno in _WRONG_KIND:
        return f"{where}{_WRONG_KIND[error.errno]}: move it away; {AGAIN}"
    return None


def unwind_on_signals() -> None:
    """Let SIGTERM and SIGINT end this process by an exception, so that temporary files are removed."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)


def _stop(number: int, frame: FrameType | None) -> None:
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.SIG_IGN)  # a second one must not interrupt the cleaning up
    name = signal.Signals(number).name
    os.write(2, f"stepcredit: stopped by {name}; {AGAIN}\n".encode())
    raise SystemExit(128 + number)
