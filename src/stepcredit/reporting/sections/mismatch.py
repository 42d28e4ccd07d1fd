"""Mismatch between sampler and trainer."""

from __future__ import annotations

from stepcredit.reporting.blocks import Section
from stepcredit.reporting.run import Run
from stepcredit.reporting.sections.pending import pending


def section(run: Run) -> Section:
    what = "No arm of this run trains under a quantised or stale sampler."
    question = "What happens when the sampler is not the model that is trained?"
    return pending(run, "mismatch", "Mismatch", question, "stability", what)
