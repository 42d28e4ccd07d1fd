"""Which function judges which claim, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from stepcredit.evaluation.statistics import Interval
from stepcredit.reporting.accessor import NotRun, Tables
from stepcredit.reporting.claims.published import Published

Verdict = Literal["reproduced", "contradicted", "inconclusive", "not run"]
Numbers = Mapping[str, Any]


@dataclass(frozen=True)
class Judgement:
    """What this run says about a claim.

    Attributes:
        verdict: by the rule named in `test`.
        reason: one line.
        test: name of the rule (a key of `rules.RULES`) and what it was applied to.
        ours: our value with its interval, None where there is none.
        unit: a key of `numbers.UNITS`.
    """

    verdict: Verdict
    reason: str
    test: str
    ours: Interval | None = None
    unit: str = "number"


Judge = Callable[[Tables, Numbers], Judgement]
JUDGES: dict[int, Judge] = {}


def judges(claim: int) -> Callable[[Judge], Judge]:
    """Register a function as the judge of a claim of SPEC section 9."""

    def register(judge: Judge) -> Judge:
        if claim in JUDGES:
            raise ValueError(f"claim {claim} has two judges")
        JUDGES[claim] = judge
        return judge

    return register


def judge_all(tables: Tables, published: Published) -> list[dict[str, Any]]:
    """One record a claim, in order; a claim whose inputs do not exist here is "not run", with its command."""
    records = []
    for number, claim in sorted(published.claims.items()):
        judgement = _judge(number, tables, claim.numbers)
        ours = judgement.ours
        not_run = judgement.verdict == "not run"
        records.append(
            {
                "id": number,
                "source": claim.source,
                "section": claim.section,
                "text": claim.text,
                "published": claim.published,
                "published_model": published.sources[claim.source].model,
                "ours": ours.mean if ours else None,
                "low": ours.low if ours else None,
                "high": ours.high if ours else None,
                "unit": judgement.unit,
                "test": judgement.test,
                "verdict": judgement.verdict,
                "reason": judgement.reason,
                "command": claim.command if not_run else None,
            }
        )
    return records


def _judge(number: int, tables: Tables, numbers: Numbers) -> Judgement:
    if number not in JUDGES:
        return Judgement("not run", "no rule judges this claim", "none")
    try:
        return JUDGES[number](tables, numbers)
    except NotRun as missing:
        return Judgement("not run", str(missing), "none")
