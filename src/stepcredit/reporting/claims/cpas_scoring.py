"""CPAS, claims 11 to 17: the potential, and what scoring costs."""

from __future__ import annotations

from stepcredit.evaluation.statistics import Interval
from stepcredit.reporting.accessor import NotRun, Tables
from stepcredit.reporting.claims.registry import Judgement, Numbers, Verdict, judges
from stepcredit.reporting.claims.rules import above, below, direction, equal, exactly


@judges(11)
def potential_tracks_success(tables: Tables, numbers: Numbers) -> Judgement:
    """The SFT checkpoint with itself as the scorer, which is the write-up's frozen scorer, and sampled answers."""
    interval = tables.interval("signal", checkpoint="sft", scorer="frozen", against="answers", boundaries="all")
    what = "Spearman correlation of potential and success rate of sampled answers, SFT checkpoint"
    return equal(interval, numbers["value"], numbers["margin"], what, "number")


@judges(12)
def an_eighth_of_the_requests_repeat(tables: Tables, numbers: Numbers) -> Judgement:
    frozen = tables.arm_with_scorer("frozen")
    interval = tables.interval("deduplication", arm=frozen)
    what = f"duplicates among the scoring requests of {frozen}"
    return equal(interval, numbers["value"], numbers["margin"], what, "fraction")


@judges(13)
def plain_log_probs_never_hit_the_cache(tables: Tables, numbers: Numbers) -> Judgement:
    rows = tables.rows("scoring", scorer="naive")
    if not rows:
        raise NotRun("scoring.csv has no row for the naive scorer")
    cached = sum(float(row["tokens_cached"]) for row in rows)
    return exactly(cached, float(numbers["value"]), "tokens that the naive scorer read from the cache")


@judges(14)
def naive_scoring_doubles_the_run(tables: Tables, numbers: Numbers) -> Judgement:
    scorer, interval = _run_ratio(tables, numbers["scorer"])
    return above(interval, numbers["ratio"], f"time of a run with {scorer} scoring over one without", "ratio")


@judges(15)
def cached_scoring_is_almost_free(tables: Tables, numbers: Numbers) -> Judgement:
    scorer, interval = _run_ratio(tables, numbers["scorer"])
    what = f"time of a run with {scorer} scoring over one without"
    return equal(interval, numbers["ratio"], numbers["margin"], what, "ratio")


def _run_ratio(tables: Tables, kind: str) -> tuple[str, Interval]:
    """Whole-run time over the baseline's with a kind of scorer: projected from the benchmark, else that of an arm."""
    if tables.has("scoring_projection"):
        return kind, tables.interval("scoring_projection", model="frozen", scorer=kind)
    rows = [row for row in tables.rows("step_ratio") if str(row["scorer"]).endswith(f"/{kind}")]
    if not rows:
        raise NotRun(f"no arm of this run scores with the {kind} scorer")
    return str(rows[0]["scorer"]), tables.interval("step_ratio", arm=rows[0]["arm"])


@judges(16)
def batching_changes_no_more_than_a_rerun(tables: Tables, numbers: Numbers) -> Judgement:
    """Reads scoring_agreement.csv: naive against batched, and each against itself, with the run's model."""

    compared = {(row["first"], row["second"]): row for row in tables.rows("scoring_agreement", model="run")}
    itself = [compared[pair] for pair in (("naive", "naive"), ("batched", "batched")) if pair in compared]
    if ("naive", "batched") not in compared or not itself:
        raise NotRun("naive and batched scoring were not both measured, one of them twice")
    between = float(compared["naive", "batched"]["max_abs_difference"])
    reruns = max(float(row["max_abs_difference"]) for row in itself)
    if not reruns:
        same: Verdict = "inconclusive" if between else "reproduced"
        return Judgement(same, f"reruns agree to the bit; naive and batched differ by {between:.1e}", "threshold")
    ratio = between / reruns
    what = f"largest difference of naive and batched ({between:.1e} nats) over that of two runs of either"
    return below(Interval(ratio, ratio, ratio), numbers["factor"], what)


@judges(17)
def early_gain_survives_wall_clock(tables: Tables, numbers: Numbers) -> Judgement:
    frozen, step = tables.arm_with_scorer("frozen"), numbers["step"]
    interval = tables.interval("wall_clock", arm=frozen, step=step, metric="pass@1")
    row = tables.row("wall_clock", arm=frozen, step=step, metric="pass@1")
    what = (
        f"pass@1 of {frozen} at step {step} minus baseline at step {row['baseline_step']}, which took at least as long"
    )
    return direction(interval, +1, what)
