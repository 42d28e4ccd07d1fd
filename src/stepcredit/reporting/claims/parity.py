"""PARITY, claims 28 to 32: sampler against trainer, from the audit on the first model."""

from __future__ import annotations

from stepcredit.evaluation.statistics import Interval
from stepcredit.losses.agreement import flagged
from stepcredit.reporting.accessor import NotRun, Tables
from stepcredit.reporting.claims.registry import Judgement, Numbers, judges
from stepcredit.reporting.claims.rules import direction, equal, every, verdicts
from stepcredit.reporting.csvfiles import Row


def _measured(tables: Tables, setting: str) -> Row:
    """The row of a setting that was measured.

    Raises:
        NotRun: it was left out of the audit, or the engine refused it.
    """
    row = tables.row("parity", setting=setting)
    if row["mean_abs"] is None:
        raise NotRun(f"{setting} has no numbers: {row['note']}")
    return row


def _ratio(tables: Tables, setting: str, minus: float = 0.0) -> Interval:
    row = _measured(tables, setting)
    return Interval(row["mean_ratio"] - minus, row["ratio_low"] - minus, row["ratio_high"] - minus)


@judges(28)
def raw_log_probs_shift_the_ratio(tables: Tables, numbers: Numbers) -> Judgement:
    raw, processed = numbers["raw"], numbers["processed"]

    def shifted() -> Judgement:
        return direction(_ratio(tables, raw, minus=1.0), +1, f"mean ratio minus 1 under {raw}", "number")

    def restored() -> Judgement:
        what = f"mean ratio under {processed}"
        return equal(_ratio(tables, processed), numbers["value"], numbers["margin"], what, "number")

    return every(shifted, restored)


@judges(29)
def processed_alone_leaves_a_gap(tables: Tables, numbers: Numbers) -> Judgement:
    """Settings of the inference path that are flagged although their log-probs are processed."""
    rows = [_measured(tables, setting) for setting in numbers["settings"]]
    found = [str(row["setting"]) for row in rows if flagged(str(row["verdict"]))]
    reason = (
        f"with processed log-probs {', '.join(found) or 'none'} of {', '.join(numbers['settings'])} still flagged;"
        f" mean ratio there {', '.join(format(row['mean_ratio'], '.4f') for row in rows)}"
    )
    return verdicts(bool(found), reason)


@judges(30)
def a_kept_cache_is_stale(tables: Tables, numbers: Numbers) -> Judgement:
    kept, reset = _measured(tables, numbers["kept"]), _measured(tables, numbers["reset"])
    stale = flagged(str(kept["verdict"])) and not flagged(str(reset["verdict"]))
    reason = (
        f"cache kept: {kept['verdict']}, mean |log ratio| {kept['mean_abs']:.2g}; cache reset: {reset['verdict']},"
        f" {reset['mean_abs']:.2g}"
    )
    interval = Interval(kept["mean_abs"], kept["mean_abs_low"], kept["mean_abs_high"])
    return verdicts(stale, reason, interval)


@judges(31)
def a_float32_head_closes_the_gap(tables: Tables, numbers: Numbers) -> Judgement:
    """The share of the bfloat16 gap that is left when both sides compute the head in float32."""
    left = _share_left(_measured(tables, numbers["without"]), _measured(tables, numbers["with"]))
    what = "mean |log ratio| with a float32 head over without"

    def narrows() -> Judgement:
        smaller = Interval(left.mean - 1, left.low - 1, left.high - 1)
        return direction(smaller, -1, f"{what}, minus 1", "number")

    return every(lambda: equal(left, 0.0, numbers["margin"], what, "number"), narrows)


def _share_left(without: Row, with_head: Row) -> Interval:
    """A quotient of two means; its ends are the worst cases of both intervals."""
    return Interval(
        with_head["mean_abs"] / without["mean_abs"],
        with_head["mean_abs_low"] / without["mean_abs_high"],
        with_head["mean_abs_high"] / without["mean_abs_low"],
    )


@judges(32)
def a_repair_hides_the_fault(tables: Tables, _: Numbers) -> Judgement:
    """Flagged faults that cannot be seen any more once the trainer divides by log-probs of its own."""
    faults = [row for row in tables.rows("parity") if flagged(str(row["verdict"])) and row["after_repair"]]
    if not faults:
        raise NotRun("the audit flagged nothing that the trainer could repair")
    hidden = [row for row in faults if not flagged(str(row["after_repair"]))]
    reason = (
        f"{len(faults)} faults of the backend show in p_old / q; in p_new / p_old, the ratio that is left after the"
        f" repair, {len(hidden)} of them pass as exact or noise"
    )
    return verdicts(len(hidden) == len(faults), reason)
