"""Failure modes and open questions."""

from __future__ import annotations

from stepcredit.reporting.blocks import Section
from stepcredit.reporting.run import Run
from stepcredit.reporting.sections.pending import pending


def section(run: Run) -> Section:
    what = "No arm of this run leaves out the paragraph guard or tries what the write-up leaves open."
    question = "What breaks the method, and what did its write-up leave open?"
    return pending(run, "failures", "Failure modes and open questions", question, "failures", what)
