"""Parity of sampler and trainer."""

from __future__ import annotations

from stepcredit.reporting.blocks import Section
from stepcredit.reporting.run import Run
from stepcredit.reporting.sections.pending import pending


def section(run: Run) -> Section:
    what = "The engine's settings were not varied against the trainer's log-probs."
    question = "Do sampler and trainer agree on the probability of the same tokens?"
    return pending(run, "parity", "Parity", question, "parity", what)
