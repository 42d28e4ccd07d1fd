"""prime-rl's output as our tables, so that evaluation and report need not know which backend ran.

Rollouts come from `rollouts/step_N/train/effective/traces.jsonl` (the groups that were trained on), the trainer's
numbers from its metrics file. A column that prime-rl does not log (`NOT_LOGGED`) holds NaN, and `outside_band` is
false: rollouts are stale by design, up to `max_off_policy_steps`. `trained_tokens` counts sampled tokens with an
advantage other than 0.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from stepcredit.losses.agreement import STEP_METRICS
from stepcredit.modeling.tokenizer import TextCodec
from stepcredit.provenance.errors import UserError
from stepcredit.rollouts import Group
from stepcredit.training.prime_rl.traces import INFO_KEY, recorded_rollout
from stepcredit.training.records import rollout_metrics
from stepcredit.training.rollout_columns import rollout_columns

NOT_LOGGED = (*(name for name in STEP_METRICS if name != "mismatch_kl"), "lag")
_TRAINER = {
    "entropy": "entropy/all/mean",
    "mismatch_kl": "mismatch_kl/all/mean",
    "masked": "is_masked/mean",
    "grad_norm": "optim/grad_norm",
    "loss": "loss/mean",
    "learning_rate": "optim/lr",
}
"""Our column to prime-rl's metric."""
_PHASES = {"generate": "time/wait_for_batch", "train": "time/forward_backward", "push": "time/broadcast_weights"}
_SUMMED = ("scorings", "scorings_unique", "tokens_scored")


@dataclass
class RunLog:
    """Rows of `metrics`, `timings` and `rollouts`, as the native backend writes them."""

    metrics: list[dict[str, Any]] = field(default_factory=list)
    timings: list[dict[str, Any]] = field(default_factory=list)
    rollouts: list[dict[str, Any]] = field(default_factory=list)


def read_metrics(path: Path) -> dict[int, dict[str, Any]]:
    """Step to what was logged for it; prime-rl writes several objects a step.

    Raises:
        UserError: the file is missing or holds no JSON lines.
    """
    steps: dict[int, dict[str, Any]] = {}
    try:
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            steps.setdefault(int(row["step"]), {}).update(row)
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"{path}: cannot be read as prime-rl's metrics ({error})") from error
    return steps


def collect_sft(metrics: Path, steps: int) -> RunLog:
    """Rows of an SFT run. `tokens`: those of the step, from prime-rl's running total."""
    logged, log, before = read_metrics(metrics), RunLog(), 0
    for step in _all_steps(logged, steps, metrics):
        row = logged[step]
        total = int(row["progress/num_tokens"])
        log.metrics.append(
            {
                "step": step,
                "learning_rate": float(row["optim/lr"]),
                "loss": float(row["loss/mean"]),
                "grad_norm": float(row.get("optim/grad_norm", math.nan)),
                "tokens": total - before,
            }
        )
        before = total
        log.timings.append(_timing(step, "train", row["time/forward_backward"]))
    return log


def collect_rl(
    run: Path, metrics: Path, codec: TextCodec, *, steps: int, max_new_tokens: int, keep_every: int
) -> RunLog:
    """Rows of an RL run of `steps` steps; rollouts of step 1 and every `keep_every` steps.

    Raises:
        UserError: a step was not logged.
    """
    logged, log = read_metrics(metrics), RunLog()
    for step in _all_steps(logged, steps, metrics):
        trained = read_step(run, step, codec)
        row = logged[step]
        groups = [group for group, _ in trained]
        log.metrics.append(
            {
                "step": step,
                **rollout_metrics(groups, codec, max_new_tokens),
                **{name: float(row.get(theirs, math.nan)) for name, theirs in _TRAINER.items()},
                **dict.fromkeys(NOT_LOGGED, math.nan),
                "trained_tokens": sum(_trained(record) for _, records in trained for record in records),
                "outside_band": False,
                **_credit_metrics([record for _, records in trained for record in records], groups),
            }
        )
        log.timings += [_timing(step, phase, row.get(theirs, 0.0)) for phase, theirs in _PHASES.items()]
        if step == 1 or step % keep_every == 0:
            log.rollouts += _rollout_rows(step, trained)
    return log


TrainedGroup = tuple[Group, list[dict[str, Any]]]
"""A group, and the record of each of its rollouts."""


def read_step(run: Path, step: int, codec: TextCodec) -> list[TrainedGroup]:
    """The groups that a step was trained on, in the order in which they were recorded.

    Raises:
        UserError: they were not recorded.
    """
    path = run / "rollouts" / f"step_{step}" / "train" / "effective" / "traces.jsonl"
    groups: dict[str, list[dict[str, Any]]] = {}
    try:
        for line in path.read_text(encoding="utf-8").splitlines():
            episode = json.loads(line)
            groups.setdefault(episode["group"]["id"], []).extend(episode["traces"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: cannot be read as prime-rl's rollouts ({error!r})") from error
    found = []
    for records in groups.values():
        graded = [recorded_rollout(record, codec) for record in records]
        found.append((Group(graded[0][0], [rollout for _, rollout in graded]), records))
    return found


def _all_steps(logged: Mapping[int, Any], last: int, path: Path) -> range:
    missing = [step for step in range(1, last + 1) if step not in logged]
    if missing:
        raise UserError(f"{path}: prime-rl logged no step {missing[0]} of {last}")
    return range(1, last + 1)


def _timing(step: int, phase: str, seconds: float) -> dict[str, Any]:
    return {"step": step, "phase": phase, "seconds": float(seconds), "cpu_seconds": math.nan}


def _trained(record: Mapping[str, Any]) -> int:
    return sum(value != 0 for node in record["nodes"] for value in node.get("advantages") or [])


def _credit_metrics(records: Sequence[Mapping[str, Any]], groups: Sequence[Group]) -> dict[str, Any]:
    """The scheme's metrics of a step: counts summed, means weighted by the rollouts they are of; {} without scorer."""
    found = [record["info"][INFO_KEY] for record in records if INFO_KEY in record.get("info", {})]
    if not found:
        return {}
    sizes = iter([len(group.rollouts) for group in groups])
    firsts, position = [], 0
    for size in sizes:
        firsts.append((found[position]["metrics"], size))
        position += size
    names = firsts[0][0]
    return {name: _combined(name, [(metrics[name], size) for metrics, size in firsts]) for name in names}


def _combined(name: str, values: Sequence[tuple[float | None, int]]) -> float | int | None:
    known = [(value, size) for value, size in values if value is not None]
    if not known:
        return None
    if name in _SUMMED:
        return int(sum(value for value, _ in known))
    return float(np.average([value for value, _ in known], weights=[size for _, size in known]))


def _rollout_rows(step: int, trained: Sequence[TrainedGroup]) -> Iterator[dict[str, Any]]:
    for index, (group, records) in enumerate(trained):
        mean = float(np.mean(group.rewards))
        for sample, (rollout, record) in enumerate(zip(group.rollouts, records, strict=True)):
            yield {
                "step": step,
                "group": index,
                "sample": sample,
                "nums": list(group.puzzle.nums),
                "target": group.puzzle.target,
                **rollout_columns(rollout),
                **_credit_columns(record.get("info", {}).get(INFO_KEY), rollout.reward - mean),
            }


def _credit_columns(credit: Mapping[str, Any] | None, advantage: float) -> dict[str, Any]:
    if credit is None:
        return {"advantage": advantage, "paragraphs": [], "likelihoods": None, "bank": []}
    return {name: credit.get(name) for name in ("advantage", "paragraphs", "likelihoods", "bank")}
