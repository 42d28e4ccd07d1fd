"""What a person sees who runs the workflow: one line a job, how far the running ones are, how long the rest takes.

A logger plugin of Snakemake, found by its name; `logger: stepcredit` in profiles/default switches it on. Dry runs,
`--verbose`, `--printshellcmds` and `--quiet` look as Snakemake makes them. Its complete log is in `.snakemake/log`.
"""

from __future__ import annotations

import logging
import shutil
import sys
import threading
from typing import Any, TextIO

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from snakemake_logger_plugin_stepcredit.failures import Failures
from snakemake_logger_plugin_stepcredit.progress import Job, Progress

TERMINAL_SECONDS = 1.0
"""How often the line at the bottom of a terminal is written anew."""
FILE_SECONDS = 60.0
"""How often a line about running jobs is added where the output goes to a file."""
CHATTER = (
    "Building DAG of jobs",
    "Using shell",
    "Using workflow specific profile",
    "Assuming unrestricted shared filesystem",
)


class LogHandler(LogHandlerBase):
    """Prints the progress of a run in place of Snakemake's own output."""

    def __post_init__(self) -> None:
        settings = self.common_settings
        self._plain = bool(
            settings.dryrun or settings.verbose or settings.debug_dag or settings.printshellcmds or settings.quiet
        )
        self._stream: TextIO = sys.stdout if settings.stdout else sys.stderr
        self._terminal = self._stream.isatty() and not settings.nocolor
        self._progress: Progress | None = None
        self._failures = Failures()
        self._cores = 1
        self._ended = threading.Event()
        self._writing = threading.RLock()

    @property
    def writes_to_stream(self) -> bool:
        return True

    @property
    def writes_to_file(self) -> bool:
        return False

    @property
    def has_filter(self) -> bool:
        """Plain output passes Snakemake's own filter."""
        return not self._plain

    @property
    def has_formatter(self) -> bool:
        return not self._plain

    @property
    def needs_rulegraph(self) -> bool:
        return False

    def emit(self, record: logging.LogRecord) -> None:
        try:
            if self._plain:
                self._write(self.format(record))
            else:
                self._summarise(record)
        except Exception:
            self.handleError(record)

    def _summarise(self, record: logging.LogRecord) -> None:
        fields, event = record.__dict__, record.__dict__.get("event")
        progress = self._progress
        if event == LogEvent.RESOURCES_INFO:
            self._cores = fields.get("cores") or self._cores
        elif event == LogEvent.RUN_INFO:
            self._start(fields["stats"])
        elif progress and event == LogEvent.JOB_INFO:
            with self._writing:
                progress.begin(Job.from_event(fields))
        elif progress and event == LogEvent.JOB_FINISHED:
            with self._writing:
                line = progress.finish(fields["job_id"])
            self._write(line)
        elif progress and event == LogEvent.JOB_ERROR:
            with self._writing:
                job = progress.fail(fields["jobid"]) or Job.from_event(fields)
            self._failures.add(job, fields)
            self._write(f"{job.name} failed; the cause follows when the other running jobs have ended")
        elif event == LogEvent.ERROR and self._failures.explains(record.getMessage()):
            pass
        elif event in (None, LogEvent.ERROR):
            self._pass_on(record)

    def _pass_on(self, record: logging.LogRecord) -> None:
        """What Snakemake says outside of jobs; during a run only what is no mere information."""
        text = record.getMessage()
        chatter = text.startswith(CHATTER) if self._progress is None else record.levelno < logging.WARNING
        if not chatter and not (self._failures and self._failures.repeats(text)):
            self._write(text)

    def _start(self, jobs: dict[str, int]) -> None:
        if self._progress is not None:
            return
        self._progress = Progress(jobs, self._cores)
        self._write(self._progress.plan())
        threading.Thread(target=self._tick, daemon=True).start()

    def _tick(self) -> None:
        progress = self._progress
        assert progress is not None
        while not self._ended.wait(TERMINAL_SECONDS if self._terminal else FILE_SECONDS):
            with self._writing:
                line = progress.status()
                if line and self._terminal:
                    width = shutil.get_terminal_size().columns
                    self._stream.write(f"\r\x1b[K{line[: width - 1]}")
                    self._stream.flush()
                elif line:
                    self._write(line)

    def _write(self, text: Any) -> None:
        if text in (None, "", "None"):
            return
        with self._writing:
            self._stream.write(("\r\x1b[K" if self._terminal and self._progress else "") + f"{text}\n")
            self._stream.flush()

    def close(self) -> None:
        """The last words of a run: all done, or the cause of each failure and where its log is."""
        if not self._ended.is_set():
            self._ended.set()
            if self._failures:
                self._write(self._failures.describe())
            elif self._progress and self._progress.complete:
                self._write(self._progress.summary())
            elif self._terminal and self._progress:
                self._stream.write("\r\x1b[K")
        super().close()
