"""The settings that need a served engine: a weight update in flight, through vLLM's own RL endpoints.

The recipe is PARITY's ("In-flight weight updates"): `/pause`, a `/collective_rpc` that loads the weights, `/resume`.
The built-in weight-transfer backends do not work on a CPU; the method called is our worker extension's.
"""

from __future__ import annotations

import http.client
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import torch

from stepcredit.scoring.server import ScorerServer, ServerSettings
from stepcredit.scoring.vllm_plugin.weights import RELOAD_METHOD
from stepcredit.studies.parity.offline import GPU_SHARE, model_length
from stepcredit.studies.parity.outcome import Outcome
from stepcredit.studies.parity.settings import PauseMode, Sampling, Setting
from stepcredit.studies.parity.trainer import Sampled, Scored, Trainer
from stepcredit.studies.parity.workload import BLOCK, Workload

_OLD, _NEW = "old", "new"
_CONCURRENT = 12
_UPDATE_AFTER = 16
"""Tokens that each completion has when the pause is asked for; the engine is ahead of what it has streamed."""
_ATTEMPTS = 3
_CACHE_MIB = 128
_PATIENCE = 120.0
"""Seconds within which something must happen."""


class ServedError(RuntimeError):
    """The served engine did not do what it was asked."""


@dataclass
class _Stream:
    """One streamed completion, as far as it has come."""

    prompt: tuple[int, ...]
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    finish_reason: str | None = None
    spans: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None

    def old_tokens(self) -> int:
        """How many tokens were sampled by the old weights, by the labels that vLLM keeps."""
        return sum(span["end"] - span["start"] for span in self.spans if span["version"] == _OLD)


class ServedEngine:
    """A vLLM server on the audited checkpoint, as a context manager."""

    def __init__(self, directory: Path, updated: Path, workload: Workload, device: str) -> None:
        """See `OfflineEngines`."""
        self._directory, self._updated = directory, updated
        self._work = workload
        self._old, self._new = Trainer(directory, device), Trainer(updated, device)
        os.environ["VLLM_SERVER_DEV_MODE"] = "1"  # without it the RL endpoints are not there
        settings = ServerSettings(
            dtype="float32",
            max_model_len=model_length(directory),
            max_concurrent=_CONCURRENT,
            max_batched_tokens=2048,
            block_size=BLOCK,
            kv_cache_mib=_CACHE_MIB if device == "cpu" else None,
            arguments=(
                "--no-enable-chunked-prefill",
                *("--logprobs-mode", "processed_logprobs"),
                *(() if device == "cpu" else ("--gpu-memory-utilization", str(GPU_SHARE))),
            ),
        )
        self._server = ScorerServer(directory, settings)

    def __enter__(self) -> Self:
        self._server.start()
        self._client = self._server.client(timeout=_PATIENCE)
        self._load(self._directory, _OLD)
        with self._generating() as streams:  # the first requests are slow
            _wait_until(lambda: all(stream.finish_reason or stream.error for stream in streams))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.stop()

    def run(self, setting: Setting) -> Outcome:
        """Update the weights while completions are under way, and score each token by the weights in force.

        Raises:
            ServedError: a stream ended without saying why, or nothing happened for long.
        """
        mode = setting.update.pause
        assert mode is not None
        for _ in range(_ATTEMPTS):
            streams = self._updated_in_flight(mode, setting.update.reset)
            if _landed(mode, streams):
                return self._outcome(streams, setting.sampling)
        raise ServedError(f"the completions ended before the pause in each of {_ATTEMPTS} attempts")

    def _updated_in_flight(self, mode: PauseMode, clear_cache: bool) -> list[_Stream]:
        self._load(self._directory, _OLD)
        with self._generating() as streams:
            _wait_until(lambda: all(len(stream.tokens) >= _UPDATE_AFTER or stream.error for stream in streams))
            self._post(f"/pause?mode={mode}&clear_cache={str(clear_cache).lower()}")
            self._load(self._updated, _NEW)
            self._post("/resume")
            _wait_until(lambda: all(stream.finish_reason or stream.error for stream in streams))
        failed = next((stream for stream in streams if stream.error or not stream.spans), None)
        if failed is not None:
            raise ServedError(failed.error or f"a stream ended ({failed.finish_reason}) without its weight versions")
        return streams

    def _outcome(self, streams: list[_Stream], sampling: Sampling) -> Outcome:
        scored = _scored(self._old, streams, sampling, new=False) + _scored(self._new, streams, sampling, new=True)
        total = sum(len(stream.tokens) for stream in streams)
        old = sum(stream.old_tokens() for stream in streams)
        reasons = sorted({str(stream.finish_reason) for stream in streams})
        note = f"{old} of {total} tokens by the old weights; finish_reason {', '.join(reasons)}"
        return Outcome(scored, lag=old / total, note=note)

    def _load(self, directory: Path, label: str) -> None:
        """Load weights into the engine and label them; the caller sees to pausing and caches."""
        self._post("/collective_rpc", {"method": RELOAD_METHOD, "args": [str(directory.resolve())]})
        self._post("/update_weight_version", {"new_version": label})
        if label == _OLD:  # between settings nothing runs, so nothing of the last one may be cached
            self._server.reset_prefix_cache()

    def _post(self, path: str, fields: dict[str, Any] | None = None) -> None:
        self._client.post(path, fields or {})

    @contextmanager
    def _generating(self) -> Iterator[list[_Stream]]:
        """Completions that run in threads while the block does."""
        prompts = self._work.batch(slow=True)[:_CONCURRENT]
        longest = model_length(self._directory) - max(map(len, prompts))
        cap = min(longest, 4 * self._work.settings.max_new_tokens)
        streams = [_Stream(prompt) for prompt in prompts]
        seeds = self._work.seeds(len(prompts))
        threads = [
            threading.Thread(target=self._follow, args=(stream, seed, cap), daemon=True)
            for stream, seed in zip(streams, seeds, strict=True)
        ]
        for thread in threads:
            thread.start()
        yield streams
        for thread in threads:
            thread.join(_PATIENCE)

    def _follow(self, stream: _Stream, seed: int, max_tokens: int) -> None:
        address = urlsplit(self._server.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=_PATIENCE)
        body = {
            "token_ids": list(stream.prompt),
            "stream": True,
            "sampling_params": {
                "temperature": 1.0,
                "max_tokens": max_tokens,
                "ignore_eos": True,
                "logprobs": 0,
                "seed": seed,
                "detokenize": False,
            },
        }
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._server.api_key}"}
        try:
            connection.request("POST", "/inference/v1/generate", json.dumps(body), headers)
            response = connection.getresponse()
            if response.status != 200:
                raise ServedError(response.read(300).decode(errors="replace"))
            for line in response:
                if line.startswith(b"data: {"):
                    _take(stream, json.loads(line[6:])["choices"])
            if stream.finish_reason is None:
                raise ServedError("the stream ended without a finish_reason")
        except (OSError, ValueError, KeyError, http.client.HTTPException, ServedError) as error:
            stream.error = f"a streamed completion failed: {error!r}"
        finally:
            connection.close()


def _take(stream: _Stream, choices: list[dict[str, Any]]) -> None:
    """Add a chunk to its stream."""
    for choice in choices:
        tokens = choice.get("token_ids") or []
        content = (choice.get("logprobs") or {}).get("content") or []
        stream.tokens += tokens
        stream.logprobs += [entry["logprob"] for entry in content[: len(tokens)]]
        if choice.get("weight_versions"):
            stream.spans = choice["weight_versions"]
        stream.finish_reason = choice.get("finish_reason") or stream.finish_reason


def _landed(mode: PauseMode, streams: list[_Stream]) -> bool:
    """Whether the pause came while completions were under way: `wait` lets them end in any case."""
    if mode == "abort":
        return any(stream.finish_reason == "abort" for stream in streams)
    return mode == "wait" or any(0 < stream.old_tokens() < len(stream.tokens) for stream in streams)


def _scored(trainer: Trainer, streams: list[_Stream], sampling: Sampling, new: bool) -> Scored:
    """The tokens of all streams that were sampled by the new weights, or by the old, scored by their trainer."""
    samples = [Sampled(stream.prompt, tuple(stream.tokens), tuple(stream.logprobs)) for stream in streams]
    scored = trainer.score(samples, sampling)
    mask = torch.cat([torch.arange(len(stream.tokens)) >= stream.old_tokens() for stream in streams])
    chosen = mask if new else ~mask
    return Scored(scored.logprobs[chosen], scored.sampler_logprobs[chosen], scored.entropies[chosen])


def _wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not happened():
        if time.monotonic() > deadline:
            raise ServedError(f"nothing happened for {_PATIENCE:g} s")
        time.sleep(0.002)
