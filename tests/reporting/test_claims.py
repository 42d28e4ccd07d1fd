import json

import pytest
from fabricate import PUBLISHED

from stepcredit.evaluation.statistics import Interval
from stepcredit.provenance.errors import UserError
from stepcredit.reporting.accessor import NotRun, Tables
from stepcredit.reporting.claims import JUDGES, write_claims
from stepcredit.reporting.claims.published import read_published
from stepcredit.reporting.claims.registry import Judgement, judge_all
from stepcredit.reporting.claims.rules import above, direction, equal, every, exactly
from stepcredit.reporting.csvfiles import write_rows

ARMS = ["arm", "label", "baseline", "credit", "scorer", "guard"]
PAIRED = ["arm", "step", "metric", "mean", "low", "high", "seeds"]


def interval(low, high):
    return Interval((low + high) / 2, low, high)


@pytest.mark.parametrize(
    ("low", "high", "up", "down"),
    [
        (0.01, 0.1, "reproduced", "contradicted"),
        (-0.1, -0.01, "contradicted", "reproduced"),
        (-0.1, 0.1, "inconclusive", "inconclusive"),
        (0.0, 0.0, "inconclusive", "inconclusive"),
    ],
)
def test_a_direction_needs_an_interval_that_excludes_zero(low, high, up, down):
    assert direction(interval(low, high), +1, "it").verdict == up
    assert direction(interval(low, high), -1, "it").verdict == down


def test_a_tie_is_reproduced_only_by_an_interval_inside_the_margin():
    assert equal(interval(-0.01, 0.015), 0, 0.02, "it").verdict == "reproduced"
    assert equal(interval(-0.01, 0.03), 0, 0.02, "it").verdict == "inconclusive"
    assert equal(interval(0.03, 0.05), 0, 0.02, "it").verdict == "contradicted"
    assert equal(interval(0.10, 0.14), 0.12, 0.05, "it").verdict == "reproduced"


def test_a_threshold_needs_the_whole_interval_beyond_it():
    assert above(interval(2.1, 2.4), 2, "it").verdict == "reproduced"
    assert above(interval(1.9, 2.4), 2, "it").verdict == "inconclusive"
    assert above(interval(1.2, 1.4), 2, "it").verdict == "contradicted"
    assert exactly(0, 0, "hits").verdict == "reproduced"
    assert exactly(5, 0, "hits").verdict == "contradicted"


def test_a_claim_of_parts_falls_with_its_worst_part():
    def part(verdict):
        return lambda: Judgement(verdict, verdict, "rule", interval(0, 1))

    def absent():
        raise NotRun("step 60 was not evaluated")

    assert every(part("reproduced"), part("reproduced")).verdict == "reproduced"
    assert every(part("reproduced"), part("inconclusive")).verdict == "inconclusive"
    assert every(absent, part("inconclusive")).verdict == "not run"
    assert every(absent, part("contradicted")).verdict == "contradicted"
    assert every(absent, part("reproduced")).ours is None


def test_every_claim_of_the_list_has_a_judge_and_a_record(finished_run):
    published = read_published(PUBLISHED)
    assert sorted(published.claims) == sorted(JUDGES) == list(range(1, 33))
    claims = json.loads((finished_run / "claims.json").read_text())["claims"]
    assert [claim["id"] for claim in claims] == list(range(1, 33))
    for claim in claims:
        assert claim["verdict"] in {"reproduced", "contradicted", "inconclusive", "not run"}
        assert claim["reason"]
        assert (claim["command"] is not None) == (claim["verdict"] == "not run")


def test_the_made_up_run_is_judged_where_it_can_be(finished_run):
    claims = {claim["id"]: claim for claim in json.loads((finished_run / "claims.json").read_text())["claims"]}
    assert claims[1]["verdict"] != "not run"
    assert "step 30" in claims[1]["reason"]
    paired = Tables(finished_run / "tables").interval("paired", arm="frozen", step=30, metric="pass@1")
    assert (claims[1]["ours"], claims[1]["low"], claims[1]["high"]) == (paired.mean, paired.low, paired.high)
    assert claims[2]["verdict"] == "not run"
    assert "step 60 was not evaluated (evaluated: 0, 10, 20, 30, 40)" in claims[2]["reason"]
    assert claims[9]["verdict"] == "not run"
    assert claims[12]["verdict"] == "reproduced"
    assert [claims[number]["verdict"] for number in range(28, 33)] == [
        "reproduced",
        "reproduced",
        "reproduced",
        "contradicted",  # the float32 head leaves the made-up gap as it was
        "reproduced",
    ]


def small_tables(tmp_path, rows, name="paired", columns=PAIRED):
    arms = [
        dict(zip(ARMS, ["base", "Base", True, "group_advantage", None, None], strict=True)),
        dict(zip(ARMS, ["slow", "Slow", False, "contrastive_potential", "moving", 32], strict=True)),
        dict(zip(ARMS, ["still", "Still", False, "contrastive_potential", "frozen", 32], strict=True)),
        dict(zip(ARMS, ["free", "Free", False, "contrastive_potential", "frozen", None], strict=True)),
    ]
    write_rows(tmp_path / "arm_list.csv", ARMS, arms)
    write_rows(tmp_path / f"{name}.csv", columns, [dict(zip(columns, row, strict=True)) for row in rows])
    steps = sorted({row[columns.index("step")] for row in rows})
    empty = [dict(zip(PAIRED, ["base", step, "pass@1", 0, 0, 0, 3], strict=True)) for step in steps]
    write_rows(tmp_path / "arms.csv", PAIRED, empty)
    return Tables(tmp_path)


def verdict(tables, number):
    published = read_published(PUBLISHED)
    return next(record for record in judge_all(tables, published) if record["id"] == number)


def test_arms_are_found_by_their_scorer_whatever_their_name(tmp_path):
    tables = small_tables(tmp_path, [["still", 30, "pass@1", 0.06, 0.02, 0.1, 3]])
    assert tables.arm_with_scorer("frozen") == "still"
    assert tables.arm_with_scorer("frozen", guarded=False) == "free"
    assert verdict(tables, 1)["verdict"] == "reproduced"


def test_losing_at_step_30_contradicts_the_first_claim(tmp_path):
    tables = small_tables(tmp_path, [["still", 30, "pass@1", -0.06, -0.1, -0.02, 3]])
    assert verdict(tables, 1)["verdict"] == "contradicted"


def test_falling_behind_once_contradicts_a_lead_that_holds_even_if_step_60_is_missing(tmp_path):
    rows = [
        ["still", 5, "pass@1", 0.05, 0.01, 0.09, 3],
        ["still", 5, "pass@4", -0.05, -0.09, -0.01, 3],
        ["still", 40, "pass@1", -0.05, -0.09, -0.01, 3],
    ]
    record = verdict(small_tables(tmp_path, rows), 4)
    assert record["verdict"] == "contradicted"
    assert "behind at 1" in record["reason"]


def test_a_lead_that_holds_from_5_to_60_with_a_dip_of_pass_at_4_is_reproduced(tmp_path):
    rows = [["still", step, "pass@1", 0.05, 0.01, 0.09, 3] for step in (5, 30, 60)]
    rows += [["still", 5, "pass@4", -0.05, -0.09, -0.01, 3]]
    assert verdict(small_tables(tmp_path, rows), 4)["verdict"] == "reproduced"


def test_published_rates_are_judged_only_where_both_were_swept(tmp_path):
    columns = ["learning_rate", "metric", "mean", "low", "high", "best", "step"]
    rows = [
        [2e-6, "pass@1", 0.60, 0.58, 0.62, False, 0],
        [5e-6, "pass@1", 0.61, 0.59, 0.63, True, 0],
        [1e-6, "pass@1", 0.50, 0.48, 0.52, False, 0],
    ]
    assert verdict(small_tables(tmp_path, rows, "sweep", columns), 9)["verdict"] == "reproduced"
    assert verdict(small_tables(tmp_path, rows[1:], "sweep", columns), 9)["verdict"] == "not run"


def test_a_cache_hit_contradicts_the_claim_that_there_are_none(tmp_path):
    columns = ["model", "scorer", "tokens_cached", "step"]
    for cached, expected in ((0, "reproduced"), (7, "contradicted")):
        tables = small_tables(tmp_path, [["frozen", "naive", cached, 0]], "scoring", columns)
        assert verdict(tables, 13)["verdict"] == expected


def test_the_correlation_is_judged_by_answers_sampled_from_the_sft_checkpoint(tmp_path):
    columns = ["checkpoint", "step", "scorer", "against", "boundaries", "mean", "low", "high"]
    others = [
        ["sft", 0, "frozen", "continuations", "all", 0.1, 0.05, 0.2],
        ["base", 40, "frozen", "answers", "all", 0, 0, 0],
    ]
    for low, high, expected in (
        (0.5, 0.7, "reproduced"),
        (0.3, 0.7, "inconclusive"),
        (0.1, 0.3, "contradicted"),
        (None, None, "not run"),
    ):
        ours = ["sft", 0, "frozen", "answers", "all", low, low, high]
        tables = small_tables(tmp_path, [*others, ours], "signal", columns)
        assert verdict(tables, 11)["verdict"] == expected


@pytest.mark.parametrize(
    ("longer", "falls", "stands", "expected"),
    [
        ((20, 40), (-0.3, -0.2), (0.05, 0.1), "reproduced"),
        ((20, 40), (0.05, 0.1), (0.05, 0.1), "contradicted"),
        ((20, 40), (-0.3, -0.2), (-0.3, -0.2), "contradicted"),
        ((-5, 40), (-0.3, -0.2), (0.05, 0.1), "inconclusive"),
    ],
)
def test_the_collapse_without_the_guard_needs_all_its_parts(tmp_path, longer, falls, stands, expected):
    def row(arm, other, low, high):
        return [arm, other, 40, "length" if other == "still" else "pass@1", (low + high) / 2, low, high, 1]

    columns = ["arm", "other", "step", "metric", "mean", "low", "high", "seeds"]
    tables = small_tables(tmp_path, [row("free", "still", *longer)], "pairs", columns)
    gains = [row("free", 0, *falls), row("still", 0, *stands)]
    names = ["arm", "from_step", *columns[2:]]
    write_rows(tmp_path / "gains.csv", names, [dict(zip(names, gain, strict=True)) for gain in gains])
    assert verdict(tables, 10)["verdict"] == expected


def test_an_unreadable_list_of_published_numbers_is_the_users_to_mend(tmp_path):
    with pytest.raises(UserError, match=r"nowhere\.yaml"):
        write_claims(tmp_path, tmp_path / "nowhere.yaml", tmp_path / "claims.json")
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("claims: 3")
    with pytest.raises(UserError, match=r"wrong\.yaml"):
        write_claims(tmp_path, wrong, tmp_path / "claims.json")
