"""A section whose experiment is not in this run: its question, in grey, and the command that runs it."""

from __future__ import annotations

from collections.abc import Sequence

from stepcredit.reporting.blocks import Absent, Block, Section
from stepcredit.reporting.run import Run


def pending(
    run: Run, key: str, title: str, question: str, table: str, what: str, blocks: Sequence[Block] = ()
) -> Section:
    """A section without an answer: `what` is missing, `table` would hold it; `blocks` are shown before."""
    return Section(key, title, question, "", [*blocks, Absent(what, run.command(table))])
