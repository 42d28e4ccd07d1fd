"""A process of the audit: measures some settings, one after another, and writes a line for each.

    python -m stepcredit.studies.parity.worker REQUEST.json ROWS.jsonl

A setting can take its process down with it: each is announced in the file before it starts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import torch
from pydantic import BaseModel

from stepcredit.countdown.puzzle import Puzzle
from stepcredit.losses.agreement import flagged, judge, measure_agreement
from stepcredit.losses.ratios import split_ratio
from stepcredit.settings.parity import ParityAuditSettings
from stepcredit.studies.parity.outcome import EngineRefusedError, Outcome
from stepcredit.studies.parity.settings import SETTINGS, Setting, on_platform


class Runner(Protocol):
    """What measures settings."""

    def run(self, setting: Setting) -> Outcome: ...


class Request(BaseModel):
    """What a worker is to do; paths are absolute."""

    model: Path
    updated: Path
    names: list[str]
    puzzles: list[tuple[list[int], int]] | None
    audit: ParityAuditSettings


def main(request_path: Path, rows_path: Path) -> None:
    """Measure the settings of a request; a line `{"started": name}` and a row for each."""
    from stepcredit.modeling.tokenizer import TextCodec
    from stepcredit.studies.parity.offline import OfflineEngines
    from stepcredit.studies.parity.served import ServedEngine
    from stepcredit.studies.parity.workload import build_workload

    torch.set_num_threads(1)
    request = Request.model_validate_json(request_path.read_text(encoding="utf-8"))
    puzzles = [Puzzle(tuple(nums), target) for nums, target in request.puzzles] if request.puzzles else None
    workload = build_workload(TextCodec.load(request.model), puzzles, request.audit)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    place = (request.model, request.updated, workload, device)
    chosen = [on_platform(SETTINGS[name], device == "cpu") for name in request.names]
    served = [setting for setting in chosen if setting.procedure == "served"]
    offline = sorted((setting for setting in chosen if setting not in served), key=lambda one: str(one.engine))
    with rows_path.open("a", encoding="utf-8", buffering=1) as stream:

        def measure(settings: list[Setting], runner: Callable[[], Runner]) -> None:
            for setting in settings:
                stream.write(json.dumps({"started": setting.name}) + "\n")
                stream.write(json.dumps(row(setting, runner)) + "\n")

        with ExitStack() as stack:
            started: list[ServedEngine] = []

            def server() -> ServedEngine:
                if not started:
                    started.append(stack.enter_context(ServedEngine(*place)))
                return started[0]

            measure(served, server)
        engines = OfflineEngines(*place)
        measure(offline, lambda: engines)


def row(setting: Setting, runner: Callable[[], Runner]) -> dict[str, Any]:
    """Measure one setting; what the engine refuses is a row without numbers."""
    try:
        outcome = runner().run(setting)
    except EngineRefusedError as error:
        return empty_row(setting, "refused", " ".join(str(error).split())[:200])
    except Exception as error:
        return empty_row(setting, "broken", f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
    scored = outcome.scored
    found = measure_agreement(scored.logprobs, scored.sampler_logprobs, scored.entropies)
    verdict = judge(found, setting.formats)
    return {
        **empty_row(setting, verdict, outcome.note),
        "after_repair": _after_repair(outcome, setting) if flagged(verdict) else None,
        **{name: getattr(found, name) for name in MEASURED},
        "lag": outcome.lag,
    }


def _after_repair(outcome: Outcome, setting: Setting) -> str | None:
    """The verdict on p_new / p_old, of log-probs that the trainer computes twice in two orders.

    This is what is left to see of a backend's fault once the objective no longer divides by the sampler's log-probs.
    """
    if outcome.again is None:
        return None
    split = split_ratio(outcome.again().logprobs, outcome.scored.logprobs, outcome.scored.sampler_logprobs)
    return judge(measure_agreement(split.update, torch.zeros_like(split.update)), setting.formats)


def empty_row(setting: Setting, verdict: str, note: str) -> dict[str, Any]:
    """The row of a setting that has no numbers (yet)."""
    return {
        "setting": setting.name,
        "area": setting.area,
        "what": setting.what,
        "known": setting.known,
        **dict.fromkeys((*MEASURED, "lag")),
        "verdict": verdict,
        "after_repair": None,
        "note": note,
    }


MEASURED = (
    "tokens",
    "mean_abs",
    "mean_abs_error",
    "worst",
    "mean_ratio",
    "ratio_error",
    "ratio_distance",
    "kl",
    "clipped",
    "effective_sample_size",
    "entropy_gap",
    "far",
    "impossible",
)
"""What `Agreement` says of a setting: the columns of its row, beside `lag`."""

if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
