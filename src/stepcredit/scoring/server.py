"""Starts a vLLM server with the scoring plugin on a checkpoint, and never leaves one behind."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from stepcredit.provenance.errors import UserError
from stepcredit.scoring.transport import HttpClient, ServerError
from stepcredit.scoring.vllm_plugin import PLUGIN_NAME, RESET_PATH, SCORE_PATH, UPDATE_PATH
from stepcredit.scoring.vllm_plugin.weights import EXTENSION_CLASS
from stepcredit.vllm_process import vllm_environment

_REPORT_EVERY = 10.0
_STOP_SECONDS = 20.0
_LOG_LINES = 15

_SERVER_MODULE = "stepcredit.scoring.api_server"


@dataclass(frozen=True)
class ServerSettings:
    """How the server runs.

    Attributes:
        host: address to listen on.
        port: 0 for one that the operating system chooses.
        dtype: of weights and activations; "auto" is the checkpoint's.
        max_model_len: longest sequence plus one; None for the model's own limit.
        max_concurrent: sequences in one forward pass.
        max_batched_tokens: tokens in one forward pass; None for vLLM's own choice.
        block_size: of the prefix cache, in tokens. A scoring recomputes the last, partly filled block of its
            prefix, so small is good; a CPU takes multiples of 32.
        kv_cache_mib: size of the KV cache; None for vLLM's own choice (on a GPU).
        allow_updates: whether `update_weights` and `reset_prefix_cache` work.
        arguments: more arguments for vLLM's command line.
    """

    host: str = "127.0.0.1"
    port: int = 0
    dtype: str = "auto"
    max_model_len: int | None = None
    max_concurrent: int = 256
    max_batched_tokens: int | None = None
    block_size: int = 32
    kv_cache_mib: int | None = None
    allow_updates: bool = True
    arguments: tuple[str, ...] = ()


class ScorerServer:
    """A scorer server, as a context manager: ready when the block begins, gone when it ends.

    A supervisor process ends the server when this process goes away in any manner (`supervisor.py`).
    """

    def __init__(
        self,
        model_directory: Path | str,
        settings: ServerSettings | None = None,
        *,
        api_key: str | None = None,
        log_path: Path | None = None,
        ready_timeout: float = 600.0,
        wait: bool = True,
        report: Callable[[str], None] | None = None,
    ) -> None:
        """
        Args:
            model_directory: a Hugging Face directory; its tokenizer is not needed.
            api_key: what clients must show; one is made up where None.
            log_path: where the server's output goes; a temporary file where None.
            ready_timeout: seconds until it must be ready to score.
            wait: whether the block begins when it is ready. Where False, the block can do something else while the
                server starts, and then calls `wait_until_ready`.
            report: is told of the progress, a line at a time; standard error where None.

        Raises:
            UserError: `model_directory` is no checkpoint.
        """
        self._model_directory = Path(model_directory)
        if not (self._model_directory / "config.json").is_file():
            raise UserError(f"{model_directory} is no checkpoint to score with: it has no config.json")
        self._settings = settings or ServerSettings()
        self.api_key = api_key or secrets.token_hex(16)
        self._log_path = log_path
        self._ready_timeout = ready_timeout
        self._wait = wait
        self._report = report or _to_standard_error
        self._process: subprocess.Popen[bytes] | None = None
        self._port: int | None = None
        self._reservation: socket.socket | None = None
        self._log: Path | None = None

    @property
    def url(self) -> str:
        """`http://host:port`.

        Raises:
            RuntimeError: the server was never started.
        """
        if self._port is None:
            raise RuntimeError("the scorer server has not been started")
        return f"http://{self._settings.host}:{self._port}"

    @property
    def log(self) -> Path | None:
        """The file with the server's output."""
        return self._log

    @property
    def process_id(self) -> int | None:
        """The supervisor's process, whose descendants are the server; None where it does not run."""
        return self._process.pid if self._process else None

    def client(self, timeout: float = 900.0) -> HttpClient:
        """A client for this server, which tells from its log why it died if it did."""
        return HttpClient(self.url, api_key=self.api_key, timeout=timeout, explain=self.death)

    def update_weights(self, directory: Path | str) -> None:
        """Score with another checkpoint of the same model from now on; what was cached is forgotten.

        Raises:
            ServerError: the server could not load it.
        """
        self.client().post(UPDATE_PATH, {"directory": str(Path(directory).resolve())})

    def reset_prefix_cache(self) -> None:
        """Forget the prefix cache.

        Raises:
            ServerError: other requests are running.
        """
        self.client().post(RESET_PATH, {})

    def death(self) -> str | None:
        """Why the server is gone; None while it lives."""
        if self._process is not None and self._process.poll() is None:
            return None
        status = "was stopped" if self._process is None else f"ended with status {self._process.returncode}"
        return f"the scorer server {status}{self._log_tail()}"

    def start(self) -> None:
        """Start, and wait until it can score, if asked to.

        Raises:
            ServerError: as `wait_until_ready`.
        """
        if self._process is not None:
            raise RuntimeError("the scorer server runs already")
        try:
            self._port = self._reserve_port()
            self._process = self._spawn()
            if self._wait:
                self.wait_until_ready()
        except BaseException:
            self.stop()
            raise

    def wait_until_ready(self) -> None:
        """Wait until the server can score.

        Raises:
            ServerError: it ended, was not ready in time, or runs without the plugin.
        """
        started = time.monotonic()
        client = HttpClient(self.url, api_key=self.api_key, timeout=30.0, attempts=1, explain=self.death)
        next_report = _REPORT_EVERY
        while True:
            try:
                client.get(SCORE_PATH)
                self._release_port()
                self._report(f"scorer server ready on {self.url} after {time.monotonic() - started:.0f} s")
                return
            except ServerError as error:
                if error.status is not None:
                    raise ServerError(f"the scorer server runs without the plugin's endpoint: {error}") from error
                if self.death():
                    raise ServerError(f"the scorer server did not start: {self.death()}") from error
            finally:
                client.close()
            elapsed = time.monotonic() - started
            if elapsed > self._ready_timeout:
                raise ServerError(f"the scorer server was not ready in {self._ready_timeout:g} s{self._log_tail()}")
            if elapsed > next_report:
                self._report(f"waiting for the scorer server: {elapsed:.0f} s")
                next_report += _REPORT_EVERY
            time.sleep(0.2)

    def stop(self) -> None:
        """Stop the server with all its processes; does nothing where it does not run."""
        process, self._process = self._process, None
        self._release_port()
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
        if kind is None and self._log_path is None and self._log is not None:
            self._log.unlink(missing_ok=True)  # after an error it is what tells the cause
            self._log = None

    def _reserve_port(self) -> int:
        """Keep a port from others until vLLM listens; vLLM may bind it too, as both set SO_REUSEADDR."""
        self._reservation = socket.socket()
        self._reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reservation.bind((self._settings.host, self._settings.port))
        return int(self._reservation.getsockname()[1])

    def _release_port(self) -> None:
        reservation, self._reservation = self._reservation, None
        if reservation is not None:
            reservation.close()

    def _spawn(self) -> subprocess.Popen[bytes]:
        assert self._port is not None
        command = [
            sys.executable,
            "-m",
            _SERVER_MODULE,
            *server_arguments(self._model_directory, self._settings),
        ]
        supervised = [sys.executable, "-m", "stepcredit.scoring.supervisor", str(os.getpid()), *command]
        if self._log_path is None:
            handle, name = tempfile.mkstemp(prefix="scorer-server-", suffix=".log")
            os.close(handle)
            self._log = Path(name)
        else:
            self._log_path.parent.mkdir(parents=True, exist_ok=True)
            self._log = self._log_path
        with self._log.open("wb") as log:
            return subprocess.Popen(
                [*supervised, "--port", str(self._port)],
                env=server_environment(self.api_key, self._settings),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C is for this process, which then stops the server
            )

    def _log_tail(self) -> str:
        if self._log is None:
            return ""
        lines = self._log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
        return "\n".join([f"; the end of its log ({self._log}):", *lines]) if lines else ""


def server_arguments(model_directory: Path, settings: ServerSettings) -> list[str]:
    """vLLM's command line, all but the port."""
    import torch

    arguments = [
        *("--model", str(model_directory)),
        *("--load-format", "safetensors"),
        *("--host", settings.host),
        *("--dtype", settings.dtype),
        *("--block-size", str(settings.block_size)),
        *("--max-num-seqs", str(settings.max_concurrent)),
        *("--worker-extension-cls", EXTENSION_CLASS),
        "--enable-prefix-caching",
        "--enable-scale-out",  # opens /inference/v1/generate, which the naive scorer asks
        "--skip-tokenizer-init",
        "--disable-uvicorn-access-log",
    ]
    if not torch.cuda.is_available():
        arguments.append("--enforce-eager")
    if settings.max_model_len is not None:
        arguments += ["--max-model-len", str(settings.max_model_len)]
    if settings.max_batched_tokens is not None:
        arguments += ["--max-num-batched-tokens", str(settings.max_batched_tokens)]
    if settings.kv_cache_mib is not None:
        arguments += ["--kv-cache-memory-bytes", str(settings.kv_cache_mib * 2**20)]
    return [*arguments, *settings.arguments]


LARGE_BYTES = 32 * 2**20
"""What is at least so large goes back to the system at once.

The logits of a prompt over a large vocabulary are. On the heap, where the workflow's setting for training would keep
them, each longer prompt takes new memory: a 135M model's server grew by 36 MB a request.
"""


def server_environment(api_key: str, settings: ServerSettings) -> dict[str, str]:
    """This process's environment, with the plugin allowed, and the key where `ps` does not show it."""
    plugins = [name for name in os.environ.get("VLLM_PLUGINS", "").split(",") if name and name != PLUGIN_NAME]
    return {
        **vllm_environment(),
        **os.environ,
        "VLLM_PLUGINS": ",".join([*plugins, PLUGIN_NAME]),
        "VLLM_API_KEY": api_key,
        "STEPCREDIT_ALLOW_UPDATES": "1" if settings.allow_updates else "0",
        "MALLOC_MMAP_THRESHOLD_": str(LARGE_BYTES),
    }


def _to_standard_error(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
