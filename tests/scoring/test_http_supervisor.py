"""Nothing of a server outlives the process that started it, however that process goes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

# A server that ignores being asked to end, with a child that does too.
STUBBORN = """
import os, pathlib, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
pathlib.Path(sys.argv[1]).write_text(f"{os.getpid()} {child.pid}")
time.sleep(300)
"""

# The same, but it ends by itself and leaves its child behind.
FORGETFUL = """
import os, pathlib, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
pathlib.Path(sys.argv[1]).write_text(f"{os.getpid()} {child.pid}")
sys.exit(7)
"""

OWNER = """
import os, subprocess, sys, time
from stepcredit.scoring import supervisor
code = "import sys; from stepcredit.scoring import supervisor; supervisor._GRACE_SECONDS = 0.3;" \
    "sys.exit(supervisor.supervise(int(sys.argv[1]), sys.argv[2:]))"
subprocess.Popen([sys.executable, "-c", code, str(os.getpid()), sys.executable, "-c", *sys.argv[1:]])
time.sleep(300)
"""


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


def pids(path: Path) -> list[int]:
    assert wait_for(lambda: path.exists() and len(path.read_text().split()) == 2), "the server did not start"
    return [int(pid) for pid in path.read_text().split()]


def supervised(script: str, path: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "stepcredit.scoring.supervisor", str(os.getpid())]
    return subprocess.Popen([*command, sys.executable, "-c", script, str(path)])


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_server_and_its_children_go_with_a_killed_owner(tmp_path: Path, how: signal.Signals) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, STUBBORN, str(tmp_path / "pids")])
    server, child = pids(tmp_path / "pids")
    assert alive(server)
    assert alive(child)
    owner.send_signal(how)
    owner.wait()
    assert wait_for(lambda: not alive(server) and not alive(child))


def test_children_that_a_server_leaves_behind_are_ended(tmp_path: Path) -> None:
    supervisor = supervised(FORGETFUL, tmp_path / "pids")
    _, child = pids(tmp_path / "pids")
    assert supervisor.wait(20) == 7
    assert wait_for(lambda: not alive(child))


def test_a_supervisor_that_is_told_to_stop_ends_everything(tmp_path: Path) -> None:
    supervisor = supervised(STUBBORN.replace("SIG_IGN", "SIG_DFL"), tmp_path / "pids")
    server, child = pids(tmp_path / "pids")
    supervisor.terminate()
    assert supervisor.wait(20) == 128 + signal.SIGTERM
    assert not alive(server)
    assert wait_for(lambda: not alive(child))


def test_a_killed_supervisor_takes_its_server_along(tmp_path: Path) -> None:
    supervisor = supervised(STUBBORN.replace("SIG_IGN", "SIG_DFL"), tmp_path / "pids")
    server, child = pids(tmp_path / "pids")
    supervisor.kill()
    supervisor.wait()
    assert wait_for(lambda: not alive(server))
    os.kill(child, signal.SIGKILL)  # a real server's children notice by themselves
