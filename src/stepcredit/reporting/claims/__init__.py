"""The claims of the write-ups, judged by stated rules from the tables of a run."""

from __future__ import annotations

import json
from pathlib import Path

from stepcredit.provenance.files import atomic_path
from stepcredit.reporting.accessor import Tables
from stepcredit.reporting.claims import cpas, cpas_scoring, parity, score_centering
from stepcredit.reporting.claims.published import read_published
from stepcredit.reporting.claims.registry import JUDGES, judge_all
from stepcredit.reporting.claims.rules import RULES

MODULES = (cpas, cpas_scoring, score_centering, parity)
"""Importing them registers their judges."""

__all__ = ["JUDGES", "MODULES", "write_claims"]


def write_claims(tables: Path, published: Path, out: Path) -> None:
    """Judge every claim of `published` and write claims.json.

    Raises:
        UserError: a table or the published numbers cannot be read.
    """
    judged = judge_all(Tables(tables), read_published(published))
    document = {"rules": RULES, "claims": judged}
    with atomic_path(out) as temporary:
        temporary.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
