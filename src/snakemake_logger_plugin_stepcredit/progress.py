"""How far a run is: jobs done, jobs that run and how far each is, how long the rest takes."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

TAIL = 2000
"""Bytes of the end of a log in which a progress bar is looked for."""
_BAR = re.compile(r"\b[A-Z]+: +\d+%\|[^|]*\| *(\d+)/(\d+) \[")


@dataclass(frozen=True)
class Job:
    """A job that Snakemake started."""

    number: int
    rule: str
    name: str
    logs: tuple[Path, ...]

    @classmethod
    def from_event(cls, fields: Mapping[str, Any]) -> Job:
        """From the fields of the log record of its start or of its failure."""
        rule = fields["rule_name"]
        wildcards = fields.get("wildcards") or {}
        words = [rule, *(f"{key}{value}" if value[:1].isdigit() else value for key, value in wildcards.items())]
        return cls(fields["jobid"], rule, " ".join(words), tuple(map(Path, fields.get("log") or ())))

    def steps(self) -> tuple[int, int] | None:
        """Steps done and steps in all, by the newest progress bar in its log; None if there is none."""
        for log in self.logs:
            try:
                with log.open("rb") as stream:
                    stream.seek(0, 2)
                    stream.seek(max(0, stream.tell() - TAIL))
                    bars = _BAR.findall(stream.read().decode("utf-8", "replace"))
            except OSError:
                continue
            if bars:
                return int(bars[-1][0]), int(bars[-1][1])
        return None


@dataclass
class Progress:
    """The jobs of a run.

    Attributes:
        planned: jobs by rule; the key `total` is left out.
        cores: how many jobs run at a time, at most.
        clock: seconds.
    """

    planned: Mapping[str, int]
    cores: int
    clock: Callable[[], float] = time.monotonic
    done: int = 0
    _began: float = 0.0
    _running: dict[int, tuple[Job, float]] = field(default_factory=dict)
    _started: Counter[str] = field(default_factory=Counter)
    _seconds: dict[str, list[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.planned = {rule: jobs for rule, jobs in self.planned.items() if rule != "total"}
        self._began = self.clock()

    @property
    def total(self) -> int:
        return sum(self.planned.values())

    @property
    def complete(self) -> bool:
        return self.done >= self.total

    def begin(self, job: Job) -> None:
        self._running[job.number] = (job, self.clock())
        self._started[job.rule] += 1

    def finish(self, number: int) -> str:
        """Take a finished job out; the line that says so."""
        self.done += 1
        found = self._running.pop(number, None)
        if found is None:
            return ""
        job, began = found
        seconds = self.clock() - began
        self._seconds.setdefault(job.rule, []).append(seconds)
        return f"{self._counter()} {job.name}: done in {duration(seconds)}"

    def fail(self, number: int) -> Job | None:
        found = self._running.pop(number, None)
        return found[0] if found else None

    def plan(self) -> str:
        jobs = sorted(self.planned.items(), key=lambda item: -item[1])
        several = [f"{count} {rule}" if count > 1 else rule for rule, count in jobs]
        return f"{_jobs(self.total)} to run, {self.cores} at a time: {', '.join(several)}"

    def status(self) -> str:
        """Running jobs, each with its steps or its time, then the time of the whole; empty if none runs."""
        if not self._running:
            return ""
        now = self.clock()
        running = []
        for job, began in self._running.values():
            steps = job.steps()
            running.append(f"{job.name} {f'step {steps[0]}/{steps[1]}' if steps else duration(now - began)}")
        return f"{self._counter()} {', '.join(running)} | {duration(now - self._began)} so far, {self.remaining()}"

    def remaining(self) -> str:
        """How long the rest takes, by the mean time of each rule's jobs so far and the steps of the running ones."""
        now = self.clock()
        left, unknown = 0.0, False
        expected = {rule: fmean(seconds) for rule, seconds in self._seconds.items()}
        for job, began in self._running.values():
            steps, spent = job.steps(), now - began
            if steps and 0 < steps[0] <= steps[1]:
                whole = spent * steps[1] / steps[0]
                expected.setdefault(job.rule, whole)
                left += whole - spent
            elif job.rule in expected:
                left += max(0.0, expected[job.rule] - spent)
            else:
                unknown = True
        for rule, jobs in self.planned.items():
            waiting = jobs - self._started[rule]
            if rule in expected:
                left += waiting * expected[rule]
            elif waiting > 0 and rule != "all":
                unknown = True
        left /= max(1, self.cores)
        if unknown and left < 1:
            return "time left not known yet"
        return f"{'at least' if unknown else 'about'} {duration(left)} left"

    def summary(self) -> str:
        return f"All done: {_jobs(self.total)} in {duration(self.clock() - self._began)}"

    def _counter(self) -> str:
        return f"[{self.done:>{len(str(self.total))}}/{self.total}]"


def duration(seconds: float) -> str:
    """`40 s`, `2 min 05 s`, `3 h 20 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def last_lines(log: Path, count: int) -> Sequence[str]:
    """The last lines of a log, progress bars as they stood at their end; none if it cannot be read."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    lines = [line.rsplit("\r", 1)[-1].rstrip() for line in text.rstrip().splitlines()]
    return [line for line in lines if line][-count:]


def _jobs(number: int) -> str:
    return f"{number} job{'' if number == 1 else 's'}"
