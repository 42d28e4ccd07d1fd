"""SC, claims 18 to 27: drift under mismatch, and what withstands it."""

from __future__ import annotations

from functools import partial

from stepcredit.evaluation.statistics import Interval
from stepcredit.reporting.accessor import NotRun, Tables
from stepcredit.reporting.claims.registry import Judgement, Numbers, judges
from stepcredit.reporting.claims.rules import above, below, direction, equal, every, exactly
from stepcredit.reporting.mismatches import (
    CENTERED,
    distorting,
    main_rewards,
    method_label,
    methods_of,
    mismatch_label,
    severest,
    stalest,
)


@judges(18)
def plain_policy_gradient_drifts_by_q_minus_p(tables: Tables, numbers: Numbers) -> Judgement:
    worst = str(severest(tables)["mismatch"])
    where = f"of the plain policy gradient under {mismatch_label(tables, worst)}"

    def drifts() -> Judgement:
        interval = tables.interval("drift", mismatch=worst, method="reinforce", metric="drift")
        return direction(interval, +1, f"drift {where}", "number")

    def by_the_difference() -> Judgement:
        interval = tables.interval("drift", mismatch=worst, method="reinforce", metric="off_difference")
        return equal(interval, 0.0, numbers["margin"], f"distance from q − p, over q − p, {where}", "fraction")

    return every(drifts, by_the_difference)


@judges(19)
def centering_removes_the_drift(tables: Tables, numbers: Numbers) -> Judgement:
    def removed(mismatch: str) -> Judgement:
        what = f"drift left by score centering under {mismatch_label(tables, mismatch)}, of q − p"
        return equal(_share(tables, mismatch, "sc"), 0.0, numbers["margin"], what, "fraction")

    severest(tables)
    return every(*(partial(removed, str(row["mismatch"])) for row in distorting(tables)))


@judges(20)
def clipping_removes_a_part(tables: Tables, numbers: Numbers) -> Judgement:
    worst = str(severest(tables)["mismatch"])
    share = _share(tables, worst, "tis")
    what = f"drift left by TIS under {mismatch_label(tables, worst)}, of q − p"
    return every(
        lambda: above(share, numbers["least"], what, "fraction"),
        lambda: below(share, numbers["most"], what, "fraction"),
    )


@judges(21)
def mild_mismatch_separates_nothing(tables: Tables, numbers: Numbers) -> Judgement:
    mild = [row for row in distorting(tables) if row["total_variation"] < numbers["total_variation"]]
    if not mild:
        least = f"{numbers['total_variation']:g}"
        raise NotRun(f"no mismatch of this run keeps the sampler within a total variation of {least}")
    mismatch = str(mild[0]["mismatch"])
    first, *others = methods_of(tables, mismatch)

    def tied(method: str) -> Judgement:
        interval = _pair(tables, mismatch, method, first)
        return equal(interval, 0.0, numbers["margin"], f"accuracy of {_named(tables, mismatch, method, first)}")

    return every(*(partial(tied, method) for method in others))


@judges(22)
def centering_holds_where_the_others_collapse(tables: Tables, numbers: Numbers) -> Judgement:
    worst = severest(tables)
    if worst["total_variation"] < numbers["total_variation"]:
        raise NotRun(f"no mismatch of this run moves the sampler by {numbers['total_variation']:g} or more")
    mismatch = str(worst["mismatch"])
    methods = methods_of(tables, mismatch)
    centered = [method for method in ("sc", "tis_sc") if method in methods]
    if not centered:
        raise NotRun("no method of this run centers scores with the top-k")

    def holds(method: str) -> Judgement:
        what = f"accuracy of {method_label(tables, method)} under {mismatch_label(tables, mismatch)} minus exact"
        return above(_pair(tables, mismatch, method, "reference"), -numbers["margin"], what, "difference")

    def falls(method: str) -> Judgement:
        what = f"accuracy of {_named(tables, mismatch, method, centered[0])}"
        return direction(_pair(tables, mismatch, method, centered[0]), -1, what)

    others = [method for method in methods if method not in CENTERED]
    return every(*(partial(holds, method) for method in centered), *(partial(falls, method) for method in others))


@judges(23)
def staleness_favours_both(tables: Tables, numbers: Numbers) -> Judgement:
    mismatch = str(stalest(tables)["mismatch"])
    interval = _pair(tables, mismatch, "tis_sc", "sc")
    return direction(interval, +1, f"accuracy of {_named(tables, mismatch, 'tis_sc', 'sc')}")


@judges(24)
def all_positive_rewards_are_the_least_stable(tables: Tables, numbers: Numbers) -> Judgement:
    mismatch = str(severest(tables)["mismatch"])
    interval = _pair(tables, mismatch, "reinforce", "group_centred")
    what = (
        f"what {mismatch_label(tables, mismatch)} does to the accuracy of the plain policy gradient,"
        " +1 and 0 minus group-centred rewards"
    )
    return direction(interval, -1, what)


@judges(25)
def centering_is_almost_free(tables: Tables, numbers: Numbers) -> Judgement:
    interval = tables.interval("stability_cost", method="sc", part="step")
    return below(interval, numbers["most"], "extra CPU time of a step with score centering", "fraction")


@judges(26)
def a_head_of_32_is_enough(tables: Tables, numbers: Numbers) -> Judgement:
    mismatch = str(severest(tables)["mismatch"])
    interval = tables.interval("drift", mismatch=mismatch, method="sc", head=numbers["head"], metric="share")
    what = f"drift left with a head of {numbers['head']} under {mismatch_label(tables, mismatch)}, of q − p"
    return equal(interval, 0.0, numbers["margin"], what, "fraction")


@judges(27)
def the_sampled_form_moves_a_handful(tables: Tables, numbers: Numbers) -> Judgement:
    row = tables.row("fingerprint", loss="sc_sampled")
    if row["outside"] is None:
        raise NotRun("the gradient of sc_sampled was not recovered")
    what = f"logits that move, of {row['moved']}, without having been sampled or drawn"
    return exactly(float(row["outside"]), float(numbers["outside"]), what)


def _share(tables: Tables, mismatch: str, method: str) -> Interval:
    """The drift of a method with the head that every method was measured with, as a share of q - p."""
    head = tables.rows("drift", method="reinforce")[0]["head"]
    return tables.interval("drift", mismatch=mismatch, method=method, head=head, metric="share")


def _pair(tables: Tables, mismatch: str, method: str, other: str) -> Interval:
    where = {"mismatch": mismatch, "method": method, "rewards": main_rewards(tables)}
    return tables.interval("stability_pairs", other=other, **where)


def _named(tables: Tables, mismatch: str, method: str, other: str) -> str:
    pair = f"{method_label(tables, method)} minus {method_label(tables, other)}"
    return f"{pair} under {mismatch_label(tables, mismatch)}"
