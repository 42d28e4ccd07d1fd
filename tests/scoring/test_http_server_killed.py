"""A real server whose supervisor and API server are killed at one blow: its engine core goes too."""

from __future__ import annotations

import signal
from pathlib import Path

import psutil
import pytest
from tiny_qwen3 import MAX_LENGTH, build_checkpoint

from stepcredit.scoring.server import ScorerServer, ServerSettings


def test_no_engine_core_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    build_checkpoint(tmp_path / "model", seed=0)
    settings = ServerSettings(dtype="float32", max_model_len=MAX_LENGTH, kv_cache_mib=32, max_concurrent=8)
    with ScorerServer(tmp_path / "model", settings, log_path=tmp_path / "server.log") as server:
        assert server.process_id is not None
        supervisor = psutil.Process(server.process_id)
        (api_server,) = supervisor.children()
        others = api_server.children(recursive=True)
        names = [process.name() + " ".join(process.cmdline()) for process in others]
        assert any("EngineCore" in name for name in names)
        assert not any("Worker" in name for name in names)  # on a CPU vLLM would start one more process for it
        supervisor.send_signal(signal.SIGSTOP)  # so that it does not see the API server end
        api_server.kill()
        supervisor.kill()
        _, left = psutil.wait_procs(others, timeout=20)
        for process in left:
            process.kill()
        assert left == []
