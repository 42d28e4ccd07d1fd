"""Rollouts of a run with their credit, and the rules that choose which of them a reader sees."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepcredit.countdown.prompt import REASONING_CLOSE
from stepcredit.reporting.raw import read_parquet
from stepcredit.seeds import derive_seed

COLUMNS = (
    "step", "group", "sample", "nums", "target", "completion", "answer", "reward", "finished", "tokens", "advantage",
    "paragraphs", "likelihoods", "bank",
)  # fmt: skip


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of a trace: potentials in nats, what was added to the advantage of its tokens."""

    text: str
    tokens: int
    before: float
    after: float
    shaping: float


@dataclass(frozen=True)
class Answer:
    """An answer of the bank: how often it was submitted, and its log-likelihood at each boundary in nats."""

    text: str
    correct: bool
    count: int
    likelihoods: tuple[float, ...]


@dataclass(frozen=True)
class Trace:
    """A shaped rollout.

    Attributes:
        tail: what follows the reasoning; it keeps the advantage of the group.
    """

    step: int
    group: int
    sample: int
    nums: tuple[int, ...]
    target: int
    reward: float
    advantage: float
    tokens: int
    finished: bool
    answer: str | None
    paragraphs: tuple[Paragraph, ...]
    tail: str
    bank: tuple[Answer, ...]

    @property
    def potential(self) -> list[float]:
        """At each boundary, from the empty prefix on."""
        return [self.paragraphs[0].before, *(paragraph.after for paragraph in self.paragraphs)]

    @property
    def shaping(self) -> list[float]:
        return [paragraph.shaping for paragraph in self.paragraphs]

    @property
    def needless(self) -> float:
        """The most negative shaping of a paragraph that begins at the highest potential of the trace; 0 if none is."""
        peak = max(self.potential)
        return min((p.shaping for p in self.paragraphs if p.before == peak), default=0.0)


@dataclass(frozen=True)
class Pick:
    """A trace shown to the reader, with the rule that chose it and the other traces of its group."""

    title: str
    rule: str
    trace: Trace | None
    others: tuple[Trace, ...] = ()


def read_traces(path: Path) -> list[Trace]:
    """The shaped rollouts of the last kept step of a run that has any, in order.

    Raises:
        UserError: the file is missing or lacks a column.
    """
    frame = read_parquet(path, COLUMNS)
    traces = [_trace(row) for row in frame.sort_values(["step", "group", "sample"]).to_dict("records") if _shaped(row)]
    last = max((trace.step for trace in traces), default=0)
    return [trace for trace in traces if trace.step == last]


def choose(traces: Sequence[Trace], seed: str) -> list[Pick]:
    """One pick a rule; `seed` is that of the random one. Two rules may choose the same trace."""
    right = [trace for trace in traces if trace.reward > 0]
    wrong = [trace for trace in traces if not trace.reward > 0]
    needless = [trace for trace in right if trace.needless < 0]
    rules: list[tuple[str, str, Sequence[Trace], Callable[[Trace], float]]] = [
        (
            "A breakthrough",
            "the largest shaping of one paragraph in a right rollout",
            right,
            lambda trace: -max(trace.shaping),
        ),
        (
            "A destructive trace",
            "the most negative sum of shaping among the wrong rollouts",
            wrong,
            lambda trace: sum(trace.shaping),
        ),
        (
            "A needless continuation",
            "the most negative shaping of a paragraph that begins where the potential is highest, in a right rollout",
            needless,
            lambda trace: trace.needless,
        ),
    ]
    picks = [_pick(title, rule, min(pool, key=order, default=None), traces) for title, rule, pool, order in rules]
    drawn = random.Random(derive_seed("trace", seed)).choice(traces) if traces else None
    return [*picks, _pick("A random trace", "drawn with a fixed seed among all shaped rollouts", drawn, traces)]


def _pick(title: str, rule: str, trace: Trace | None, traces: Sequence[Trace]) -> Pick:
    if trace is None:
        return Pick(title, rule, None)
    others = tuple(other for other in traces if other.group == trace.group and other.sample != trace.sample)
    return Pick(title, rule, trace, others)


def _shaped(row: dict[Any, Any]) -> bool:
    paragraphs = row["paragraphs"]
    return paragraphs is not None and len(paragraphs) > 0 and paragraphs[0]["potential_before"] is not None


def _trace(row: dict[Any, Any]) -> Trace:
    likelihoods = [] if row["likelihoods"] is None else [list(map(float, at)) for at in row["likelihoods"]]
    bank = [] if row["bank"] is None else row["bank"]
    completion = str(row["completion"])
    closing = completion.find(REASONING_CLOSE)
    return Trace(
        step=int(row["step"]),
        group=int(row["group"]),
        sample=int(row["sample"]),
        nums=tuple(map(int, row["nums"])),
        target=int(row["target"]),
        reward=float(row["reward"]),
        advantage=float(row["advantage"]),
        tokens=int(row["tokens"]),
        finished=bool(row["finished"]),
        answer=row["answer"],
        paragraphs=tuple(
            Paragraph(
                text=str(p["text"]),
                tokens=int(p["tokens"]),
                before=float(p["potential_before"]),
                after=float(p["potential_after"]),
                shaping=float(p["shaping"]),
            )
            for p in row["paragraphs"]
        ),
        tail=completion[closing:] if closing >= 0 else "",
        bank=tuple(
            Answer(
                text=str(answer["answer"]),
                correct=bool(answer["correct"]),
                count=int(answer["count"]),
                likelihoods=tuple(at[index] for at in likelihoods),
            )
            for index, answer in enumerate(bank)
        ),
    )
