"""CPAS, claims 1 to 10: what shaping does to learning."""

from __future__ import annotations

from stepcredit.reporting.accessor import NotRun, Tables
from stepcredit.reporting.claims.registry import Judgement, Numbers, Verdict, judges
from stepcredit.reporting.claims.rules import above, direction, equal, every

COLLAPSE = 0.05
"""A fall of pass@1 by more than this is a collapse (claim 10)."""


def _lead(tables: Tables, arm: str, step: int, metric: str = "pass@1") -> Judgement:
    interval = tables.interval("paired", arm=arm, step=step, metric=metric)
    return direction(interval, +1, f"{metric} of {arm} minus baseline at step {step}")


@judges(1)
def frozen_leads_at_step_30(tables: Tables, numbers: Numbers) -> Judgement:
    return _lead(tables, tables.arm_with_scorer("frozen"), numbers["step"])


@judges(2)
def frozen_leads_at_step_60(tables: Tables, numbers: Numbers) -> Judgement:
    return _lead(tables, tables.arm_with_scorer("frozen"), numbers["step"])


@judges(3)
def pass_at_4_leads_then_ties(tables: Tables, numbers: Numbers) -> Judgement:
    frozen = tables.arm_with_scorer("frozen")

    def tied() -> Judgement:
        interval = tables.interval("paired", arm=frozen, step=numbers["late"], metric="pass@4")
        what = f"pass@4 of {frozen} minus baseline at step {numbers['late']}"
        return equal(interval, 0.0, numbers["margin"], what)

    return every(lambda: _lead(tables, frozen, numbers["step"], "pass@4"), tied)


@judges(4)
def lead_is_early_and_holds(tables: Tables, numbers: Numbers) -> Judgement:
    frozen = tables.arm_with_scorer("frozen")
    early, late = numbers["early"], numbers["late"]
    return every(
        lambda: _lead(tables, frozen, early),
        lambda: _holds(tables, frozen, early, late),
        lambda: _dips(tables, frozen, numbers["dip_until"]),
    )


def _holds(tables: Tables, arm: str, early: int, late: int) -> Judgement:
    """The lead at every evaluated step of a range: one step behind contradicts, all steps ahead reproduce."""
    rows = [
        row
        for row in tables.rows("paired", arm=arm, metric="pass@1")
        if early <= row["step"] <= late and row["low"] is not None
    ]
    behind = [row["step"] for row in rows if row["high"] < 0]
    ahead = [row["step"] for row in rows if row["low"] > 0]
    if not behind and late not in tables.steps():
        raise NotRun(f"step {late} was not evaluated (evaluated: {', '.join(map(str, tables.steps()))})")
    verdict: Verdict = "inconclusive"
    if behind:
        verdict = "contradicted"
    elif len(ahead) == len(rows):
        verdict = "reproduced"
    reason = f"ahead at {len(ahead)} of {len(rows)} evaluated steps {early} to {late}, behind at {len(behind)}"
    return Judgement(verdict, reason, f"direction (> 0) at every step {early} to {late}")


def _dips(tables: Tables, arm: str, until: int) -> Judgement:
    """pass@4 below the baseline's at an early step: the lowest evaluated one is judged."""
    steps = [step for step in tables.steps() if 0 < step <= until]
    if not steps:
        raise NotRun(f"no step up to {until} was evaluated")
    intervals = {step: tables.interval("paired", arm=arm, step=step, metric="pass@4") for step in steps}
    lowest = min(steps, key=lambda step: intervals[step].mean)
    return direction(intervals[lowest], -1, f"pass@4 of {arm} minus baseline at step {lowest}")


@judges(5)
def frozen_ends_equal(tables: Tables, numbers: Numbers) -> Judgement:
    frozen, step = tables.arm_with_scorer("frozen"), numbers["step"]
    interval = tables.interval("paired", arm=frozen, step=step, metric="pass@1")
    return equal(interval, 0.0, numbers["margin"], f"pass@1 of {frozen} minus baseline at step {step}")


@judges(6)
def moving_ends_best_and_still_rises(tables: Tables, numbers: Numbers) -> Judgement:
    moving, frozen = tables.arm_with_scorer("moving"), tables.arm_with_scorer("frozen")
    step, before = numbers["step"], numbers["before"]

    def over_frozen() -> Judgement:
        interval = tables.interval("pairs", arm=moving, other=frozen, step=step, metric="pass@1")
        return direction(interval, +1, f"pass@1 of {moving} minus {frozen} at step {step}")

    def rises() -> Judgement:
        interval = tables.interval("gains", arm=moving, from_step=before, step=step, metric="pass@1")
        return direction(interval, +1, f"pass@1 of {moving} at step {step} minus step {before}")

    return every(lambda: _lead(tables, moving, step), over_frozen, rises)


@judges(7)
def moving_gains_less_early(tables: Tables, numbers: Numbers) -> Judgement:
    moving, frozen, step = tables.arm_with_scorer("moving"), tables.arm_with_scorer("frozen"), numbers["step"]
    interval = tables.interval("pairs", arm=moving, other=frozen, step=step, metric="pass@1")
    return direction(interval, -1, f"pass@1 of {moving} minus {frozen} at step {step}")


@judges(8)
def most_of_sft_is_format(tables: Tables, numbers: Numbers) -> Judgement:
    """Reads `format_share`: the share of SFT's gain in pass@1 that well-formed answers explain."""
    if not tables.has("sft_progress"):
        raise NotRun("the model before SFT was not evaluated")
    interval = tables.interval("sft_progress", metric="format_share")
    return above(interval, numbers["share"], "share of the gain that is format", "fraction")


@judges(9)
def published_rates_lead_the_sweep(tables: Tables, numbers: Numbers) -> Judgement:
    swept = {row["learning_rate"]: row for row in tables.rows("sweep", metric="pass@1")}
    rates = list(numbers["rates"])
    others = [row for rate, row in swept.items() if rate not in rates]
    if not all(rate in swept for rate in rates) or not others:
        found = ", ".join(f"{rate:g}" for rate in sorted(swept))
        wanted = " and ".join(f"{rate:g}" for rate in rates)
        raise NotRun(f"the sweep of this model holds {found}: {wanted} belong to another model")
    weakest = min((swept[rate] for rate in rates), key=lambda row: float(row["mean"]))
    strongest = max(others, key=lambda row: float(row["mean"]))
    verdict: Verdict = "inconclusive"
    if weakest["low"] > strongest["high"]:
        verdict = "reproduced"
    elif weakest["high"] < strongest["low"]:
        verdict = "contradicted"
    reason = (
        f"pass@1 {weakest['mean']:.3f} at the weaker of the two rates,"
        f" {strongest['mean']:.3f} at the best other ({strongest['learning_rate']:g})"
    )
    return Judgement(verdict, reason, "threshold (intervals apart)")


@judges(10)
def guard_prevents_the_collapse(tables: Tables, numbers: Numbers) -> Judgement:
    without = tables.arm_with_scorer("frozen", guarded=False)
    guarded = tables.arm_with_scorer("frozen")
    last = tables.steps()[-1]

    def longer() -> Judgement:
        interval = tables.interval("pairs", arm=without, other=guarded, step=last, metric="length")
        what = f"length of {without} minus {guarded} at step {last}"
        return direction(interval, +1, what, "token difference")

    def falls() -> Judgement:
        interval = tables.interval("gains", arm=without, from_step=0, step=last, metric="pass@1")
        return direction(interval, -1, f"pass@1 of {without} at step {last} minus step 0")

    def stands() -> Judgement:
        interval = tables.interval("gains", arm=guarded, from_step=0, step=last, metric="pass@1")
        return above(interval, -COLLAPSE, f"pass@1 of {guarded} at step {last} minus step 0", "difference")

    return every(longer, falls, stands)
