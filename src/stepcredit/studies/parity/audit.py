"""The audit: settings dealt out to processes, their rows gathered, and what contradicts what is known."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from stepcredit.countdown.puzzle import Puzzle
from stepcredit.losses.agreement import flagged
from stepcredit.settings.parity import ParityAuditSettings
from stepcredit.studies.parity.settings import SETTINGS, Setting, choose_settings
from stepcredit.studies.parity.worker import Request, empty_row
from stepcredit.studies.parity.workload import write_updated_model

Row = dict[str, Any]
_SERVED_COST, _ENGINE_COST, _SETTING_COST = 30.0, 3.0, 1.5
"""Seconds, about: how the settings are dealt out."""
_LOG_LINES = 3


def run_audit(
    directory: Path, audit: ParityAuditSettings, puzzles: Sequence[Puzzle] | None = None, workers: int = 2
) -> list[Row]:
    """Measure the settings of `audit` on a checkpoint; a row each, in the audit's order.

    Args:
        puzzles: what prompts are made of; random ones where None.
        workers: processes at a time, each with one thread.

    Raises:
        UserError: a setting is not known.
    """
    settings = choose_settings(audit.settings)
    rows: dict[str, Row] = {}
    with tempfile.TemporaryDirectory(prefix="parity-") as name:
        work = Path(name)
        updated = work / "updated"
        write_updated_model(directory, updated, audit.weight_change, audit.seed)
        given = [(list(puzzle.nums), puzzle.target) for puzzle in puzzles[:64]] if puzzles else None

        def measure(index: int, names: list[str]) -> None:
            request = Request(model=directory.resolve(), updated=updated, names=names, puzzles=given, audit=audit)
            rows.update(_measured(work / f"worker{index}", request))

        shares = deal(settings, workers)
        with ThreadPoolExecutor(len(shares)) as pool:
            list(pool.map(measure, range(len(shares)), shares))
    return [rows[setting.name] for setting in settings]


def deal(settings: Sequence[Setting], workers: int) -> list[list[str]]:
    """Names of the settings for each worker, settings of one engine together, work about even."""
    engines: dict[str, list[Setting]] = {}
    for setting in settings:
        engines.setdefault("served" if setting.procedure == "served" else str(setting.engine), []).append(setting)

    def cost(key: str) -> float:
        start = _SERVED_COST if key == "served" else _ENGINE_COST
        return start + _SETTING_COST * len(engines[key])

    shares: list[tuple[float, list[str]]] = [(0.0, []) for _ in range(max(1, min(workers, len(engines))))]
    for key in sorted(engines, key=cost, reverse=True):
        index = min(range(len(shares)), key=lambda one: shares[one][0])
        load, names = shares[index]
        shares[index] = (load + cost(key), [*names, *(setting.name for setting in engines[key])])
    return [names for _, names in shares if names]


def _measured(stem: Path, request: Request) -> dict[str, Row]:
    """Run a worker; where a setting ends its process, that setting is broken and another worker does the rest."""
    rows: dict[str, Row] = {}
    left = list(request.names)
    log = stem.with_suffix(".log")
    while left:
        stem.with_suffix(".json").write_text(request.model_copy(update={"names": left}).model_dump_json())
        out = stem.with_suffix(".jsonl")
        out.unlink(missing_ok=True)
        status = _run_worker(stem.with_suffix(".json"), out, log)
        lines = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
        rows |= {line["setting"]: line for line in lines if "setting" in line}
        started = [line["started"] for line in lines if "started" in line]
        if status and (not started or started[-1] in rows):
            raise RuntimeError(f"a worker of the audit ended with status {status}:\n{_tail(log, 30)}")
        if status:
            note = f"the engine's process ended with status {status}: {_tail(log, _LOG_LINES)}"
            rows[started[-1]] = empty_row(SETTINGS[started[-1]], "broken", note)
        left = [name for name in left if name not in rows]
    return rows


def _run_worker(request: Path, out: Path, log: Path) -> int:
    command = [sys.executable, "-m", "stepcredit.studies.parity.worker", str(request), str(out)]
    supervised = [sys.executable, "-m", "stepcredit.scoring.supervisor", str(os.getpid()), *command]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with log.open("ab") as stream:
        return subprocess.run(
            supervised, env=environment, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT, check=False
        ).returncode


def _tail(log: Path, lines: int) -> str:
    return " ".join(log.read_text(errors="replace").splitlines()[-lines:])[-1500:]


def surprises(rows: Sequence[Row]) -> list[str]:
    """Settings whose verdict is not what is known of them: a bad one that passed, a good one that was flagged."""
    return [
        row["setting"]
        for row in rows
        if (row["known"] == "bad" and not (flagged(row["verdict"]) or row["verdict"] == "refused"))
        or (row["known"] == "good" and row["verdict"] not in ("exact", "numerical noise"))
    ]
