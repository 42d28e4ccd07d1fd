"""The sections of the report, in order.

To add one: a module with `section(run) -> Section | None`, and a line here.
"""

from __future__ import annotations

from collections.abc import Callable

from stepcredit.reporting.blocks import Section
from stepcredit.reporting.run import Run
from stepcredit.reporting.sections import (
    arms,
    claims,
    data,
    failures,
    mismatch,
    overview,
    parity,
    provenance,
    scoring,
    sft,
    signal,
)

SECTIONS: tuple[Callable[[Run], Section | None], ...] = (
    claims.section,
    overview.section,
    data.section,
    sft.section,
    arms.section,
    signal.section,
    failures.section,
    scoring.section,
    mismatch.section,
    parity.section,
    provenance.section,
)
