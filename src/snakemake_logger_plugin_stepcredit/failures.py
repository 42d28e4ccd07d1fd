"""Failed jobs: the cause of each, as the last lines of a run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from snakemake_logger_plugin_stepcredit.progress import Job, last_lines

LINES = 12
"""Lines of a failed job's log that are shown."""
_STATUS = re.compile(r"non-zero exit status (\d+)|died with <Signals\.\w+: (\d+)>")
REPEATED = ("At least one job did not complete successfully", "Exiting because a job execution failed")
KILLED = 9


class Failures:
    """The jobs of a run that failed, in order."""

    def __init__(self) -> None:
        self._jobs: list[tuple[Job, str]] = []
        self._errors: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def explains(self, error: str) -> bool:
        """Whether an error is that of a job's command, which `describe` tells in its own words."""
        if _STATUS.search(error):
            self._errors.append(" ".join(error.split()))
            return True
        return False

    def repeats(self, text: str) -> bool:
        """Whether a message only says that some job failed."""
        return any(sign in text for sign in REPEATED)

    def add(self, job: Job, fields: Mapping[str, Any]) -> None:
        """A job that failed, with the fields of the record that says so."""
        command = " ".join((fields.get("shellcmd") or "").split())
        error = next((error for error in self._errors if command and command in error), "")
        self._jobs.append((job, _how(error)))

    def describe(self) -> str:
        """For each job its name, the end of its log, and where that is."""
        blocks = []
        for job, how in self._jobs:
            lines = [f"\n{job.name} failed{how}"]
            for log in job.logs:
                tail = last_lines(log, LINES)
                lines += [f"  | {line}" for line in tail] or ["  | (its log is empty)"]
                lines.append(f"log: {log}")
            blocks.append("\n".join(lines))
        return "\n".join(blocks)


def _how(error: str) -> str:
    found = _STATUS.search(error)
    if found is None:
        return ""
    status = int(found[1] or found[2])
    signal = status - 128 if status > 128 else status if found[2] else 0
    if signal == KILLED:
        return ": killed by signal 9, mostly for want of memory (docs/troubleshooting.md)"
    return f": killed by signal {signal}" if signal else f" with exit status {status}"
