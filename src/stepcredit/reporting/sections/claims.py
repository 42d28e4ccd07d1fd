"""Claims: what the write-ups say, and what this run says about it."""

from __future__ import annotations

from typing import Any

from stepcredit.evaluation.statistics import Interval
from stepcredit.reporting.blocks import Block, ClaimRow, Claims, Details, Facts, Note, Prose, Section
from stepcredit.reporting.numbers import joined, with_interval
from stepcredit.reporting.run import Run

JUDGED = ("reproduced", "contradicted", "inconclusive")


def section(run: Run) -> Section:
    records = run.claims["claims"]
    judged = [record for record in records if record["verdict"] in JUDGED]
    waiting = [record for record in records if record["verdict"] not in JUDGED]
    blocks: list[Block] = []
    if judged:
        blocks.append(Claims([_row(record) for record in judged]))
    if waiting:
        summary = f"Not run here: {_claims(len(waiting))}, each with the command that would test it"
        blocks.append(Details(summary, [Claims([_row(record) for record in waiting])], bulk=True))
    blocks.append(Details("How a verdict is reached", _rules(run)))
    blocks.append(
        Note(
            "The published values are of another model at another scale: set beside ours, not a target."
            " Each claim is judged by its own interval, uncorrected for how many claims there are."
        )
    )
    question = "Does what the write-ups report hold here?"
    return Section("claims", "Claims", question, _answer(records), blocks)


def _answer(records: list[dict[str, Any]]) -> str:
    counts = {verdict: sum(record["verdict"] == verdict for record in records) for verdict in JUDGED}
    said = [f"{number} {verdict}" for verdict, number in counts.items()]
    waiting = len(records) - sum(counts.values())
    first = next((record for record in records if record["id"] == 1), None)
    lead = ""
    if first and first["verdict"] in JUDGED:
        lead = f" The first of them, that a frozen scorer raises pass@1 at step 30, is {first['verdict']}:"
        lead += f" {_ours(first)}."
    return f"Of {_claims(len(records))}, {joined(said)}; {waiting} need what this run does not have.{lead}"


def _claims(number: int) -> str:
    return f"{number} claim{'' if number == 1 else 's'}"


def _row(record: dict[str, Any]) -> ClaimRow:
    not_run = record["verdict"] == "not run"
    ours = _ours(record)
    alone = bool(ours) and not record["test"].startswith("all")
    return ClaimRow(
        number=record["id"],
        verdict=record["verdict"],
        text=record["text"],
        where=record["source"],
        published=record["published"],
        ours=ours,
        reason=_sentence(record["reason"].removesuffix(f": {ours}") if alone else record["reason"]),
        test="" if not_run else record["test"],
        command=record["command"] or "",
    )


def _ours(record: dict[str, Any]) -> str:
    if record["ours"] is None:
        return ""
    interval = Interval(record["ours"], record["low"], record["high"])
    return with_interval(interval, record["unit"])


def _sentence(text: str) -> str:
    return f"{text}." if text.startswith("pass@") else f"{text[:1].upper()}{text[1:]}."


def _rules(run: Run) -> list[Block]:
    said = "A verdict follows from the tables of this run by one of these rules; none is typed in."
    return [Prose(said), Facts(list(run.claims["rules"].items()))]
