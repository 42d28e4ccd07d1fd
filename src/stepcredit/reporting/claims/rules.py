"""The rules that turn intervals into verdicts. A verdict is never typed in: it follows from one of these."""

from __future__ import annotations

from collections.abc import Callable

from stepcredit.evaluation.statistics import Interval
from stepcredit.reporting.accessor import NotRun
from stepcredit.reporting.claims.registry import Judgement, Verdict
from stepcredit.reporting.numbers import number, with_interval

RULES = {
    "direction": "reproduced if the interval excludes zero in the claimed direction, contradicted if it"
    " excludes zero in the other one, else inconclusive",
    "equal": "reproduced if the interval lies within the margin around the published value (zero for a"
    " tie), contradicted if it lies outside it, else inconclusive",
    "threshold": "reproduced if the whole interval is on the claimed side of the threshold, contradicted if"
    " it is on the other side, else inconclusive",
    "count": "an exact count: reproduced if it is the published one, else contradicted",
    "verdicts": "reproduced if the audit of sampler against trainer gives the claimed verdicts, else contradicted",
    "all": "contradicted if any part is, else not run if any part is, else inconclusive if any part is, else"
    " reproduced",
    "none": "not judged: an input does not exist in this run",
}


def direction(interval: Interval, sign: int, what: str, unit: str = "difference") -> Judgement:
    """Does `what` have the claimed sign (+1 or -1)?"""
    low, high = sorted((sign * interval.low, sign * interval.high))
    verdict: Verdict = "reproduced" if low > 0 else "contradicted" if high < 0 else "inconclusive"
    reason = f"{what}: {with_interval(interval, unit)}"
    return Judgement(verdict, reason, f"direction ({'>' if sign > 0 else '<'} 0)", interval, unit)


def equal(interval: Interval, value: float, margin: float, what: str, unit: str = "difference") -> Judgement:
    """Does `what` equal the published value within a margin?"""
    inside = value - margin <= interval.low and interval.high <= value + margin
    outside = interval.high < value - margin or interval.low > value + margin
    verdict: Verdict = "reproduced" if inside else "contradicted" if outside else "inconclusive"
    test = f"equal ({number(value, unit)} ± {number(margin, unit).lstrip('+')})"
    return Judgement(verdict, f"{what}: {with_interval(interval, unit)}", test, interval, unit)


def above(interval: Interval, threshold: float, what: str, unit: str = "ratio") -> Judgement:
    """Is `what` greater than a threshold?"""
    verdict: Verdict = "inconclusive"
    if interval.low > threshold:
        verdict = "reproduced"
    elif interval.high < threshold:
        verdict = "contradicted"
    test = f"threshold (> {number(threshold, unit)})"
    return Judgement(verdict, f"{what}: {with_interval(interval, unit)}", test, interval, unit)


def below(interval: Interval, threshold: float, what: str, unit: str = "ratio") -> Judgement:
    """Is `what` at most a threshold?"""
    verdict: Verdict = "inconclusive"
    if interval.high <= threshold:
        verdict = "reproduced"
    elif interval.low > threshold:
        verdict = "contradicted"
    test = f"threshold (≤ {number(threshold, unit)})"
    return Judgement(verdict, f"{what}: {with_interval(interval, unit)}", test, interval, unit)


def exactly(found: float, value: float, what: str) -> Judgement:
    """Is an exact count the published one?"""
    verdict: Verdict = "reproduced" if found == value else "contradicted"
    return Judgement(verdict, f"{what}: {found:g}", "count", Interval(found, found, found))


def verdicts(as_claimed: bool, reason: str, ours: Interval | None = None) -> Judgement:
    """Are the verdicts of the parity audit the claimed ones?"""
    return Judgement("reproduced" if as_claimed else "contradicted", reason, "verdicts", ours)


def every(*parts: Callable[[], Judgement]) -> Judgement:
    """A claim of several parts; the value shown is that of its first part that has one."""
    judged: list[Judgement] = []
    for part in parts:
        try:
            judged.append(part())
        except NotRun as missing:
            judged.append(Judgement("not run", str(missing), "none"))
    order: list[Verdict] = ["contradicted", "not run", "inconclusive", "reproduced"]
    verdict = min((part.verdict for part in judged), key=order.index)
    shown = next((part for part in judged if part.ours is not None), judged[0])
    reason = "; ".join(dict.fromkeys(f"{part.reason} ({part.verdict})" for part in judged))
    test = "all: " + "; ".join(dict.fromkeys(part.test for part in judged))
    ours = None if verdict == "not run" else shown.ours
    return Judgement(verdict, reason, test, ours, shown.unit)
