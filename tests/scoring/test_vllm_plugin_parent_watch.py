"""An engine core does not outlive the server that started it, though nobody is left to end it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from test_http_supervisor import alive, wait_for

# A server that starts its engine as vLLM does; the engine ignores being asked to end, and is busy.
SERVER = """
import multiprocessing, os, pathlib, signal, sys, time

def engine(path):
    from stepcredit.scoring.vllm_plugin.parent_watch import end_with_parent
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    end_with_parent()
    pathlib.Path(path).write_text(str(os.getpid()))
    while True:
        sum(range(100_000))

if __name__ == "__main__":
    multiprocessing.get_context(sys.argv[1]).Process(target=engine, args=(sys.argv[2],)).start()
    time.sleep(300)
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_an_engine_ends_with_its_server(tmp_path: Path, method: str) -> None:
    script, note = tmp_path / "server.py", tmp_path / "pid"
    script.write_text(SERVER)
    server = subprocess.Popen([sys.executable, str(script), method, str(note)])
    assert wait_for(lambda: note.exists() and bool(note.read_text())), "the engine did not start"
    engine = int(note.read_text())
    assert alive(engine)
    server.send_signal(signal.SIGKILL)
    server.wait()
    assert wait_for(lambda: not alive(engine))


def test_a_process_that_nobody_started_by_multiprocessing_is_left_alone() -> None:
    module = "stepcredit.scoring.vllm_plugin.parent_watch"
    code = f"import threading, {module} as watch; watch.end_with_parent(); print(threading.active_count())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"
