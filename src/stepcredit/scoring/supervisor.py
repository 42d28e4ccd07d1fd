"""Runs a command and sees to it that nothing of it outlives the process that wanted it.

    python -m stepcredit.scoring.supervisor OWNER_PID COMMAND...

The command gets a process group of its own. The supervisor ends the whole group when it is told to (SIGTERM),
when the owner is gone, however it went, and when the command itself has ended and left children behind.
Should the supervisor be killed outright, the kernel ends the command (PR_SET_PDEATHSIG). Should the command be
killed outright at the same moment, its children have to notice by themselves; vLLM's do by `parent_watch`.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time

_POLL_SECONDS = 0.1
_GRACE_SECONDS = 10.0
_PR_SET_PDEATHSIG = 1


def supervise(owner: int, command: list[str]) -> int:
    """Run `command` until it ends, the owner is gone, or SIGTERM or SIGINT comes; returns its exit status."""
    told_to_stop = False

    def stop(*_: object) -> None:
        nonlocal told_to_stop
        told_to_stop = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    # This process has one thread, which is what makes code between fork and exec safe.
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, process_group=0, preexec_fn=_end_with_parent)
    try:
        while process.poll() is None and not told_to_stop and os.getppid() == owner:
            time.sleep(_POLL_SECONDS)
    finally:
        end_group(process)
    return process.returncode


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a command and its whole process group: politely, and after a while not."""
    _signal_group(process.pid, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE_SECONDS
    while time.monotonic() < deadline and _group_exists(process):
        time.sleep(_POLL_SECONDS)
    _signal_group(process.pid, signal.SIGKILL)
    process.wait()


def _group_exists(process: subprocess.Popen[bytes]) -> bool:
    process.poll()  # a dead leader would count as a member until it is waited for
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return False
    return True


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


def _end_with_parent() -> None:
    with contextlib.suppress(OSError, AttributeError):  # elsewhere than on Linux
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


if __name__ == "__main__":
    status = supervise(int(sys.argv[1]), sys.argv[2:])
    sys.exit(status if status >= 0 else 128 - status)
