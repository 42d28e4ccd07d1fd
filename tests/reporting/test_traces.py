"""Which rollouts the report shows, by which rule, and how."""

import re
from itertools import pairwise

import pandas as pd
import pytest

from stepcredit.reporting.trace_markup import nats, picks_markup, signed
from stepcredit.reporting.traces import Answer, Paragraph, Trace, choose, read_traces


def trace(sample, reward, *potential, group=0, text="Try 3 + 5 = 8."):
    """A trace whose paragraphs run along a potential, with the write-up's beta and gamma."""
    paragraphs = [
        Paragraph(text, 9, before, after, 0.1 * (0.99 * after - before)) for before, after in pairwise(potential)
    ]
    return Trace(
        step=10, group=group, sample=sample, nums=(3, 5, 2), target=16, reward=reward, advantage=reward - 0.5,
        tokens=40, finished=True, answer="2 * (3 + 5)", paragraphs=tuple(paragraphs),
        tail="</reasoning>\n<solution>x</solution>",
        bank=(Answer("2 * (3 + 5)", True, 2, potential), Answer("<i>3</i>", False, 1, potential)),
    )  # fmt: skip


TRACES = [
    trace(0, 1.0, 0.0, 1.0, 4.0, 4.0),
    trace(1, 1.0, 0.0, 5.0, 2.0, 3.0),  # the steepest rise, and then a fall from the top
    trace(2, 0.0, 0.0, 5.0, -5.0),
    trace(3, 0.0, 2.0, -5.0, group=1),  # the deepest sum
    trace(4, 1.0, 1.0, 1.0, group=1),
]


def test_each_rule_chooses_what_it_says():
    breakthrough, destructive, needless, random_one = choose(TRACES, "frozen")
    assert breakthrough.trace.sample == 1  # 0.1 * 0.99 * 5 in one paragraph
    assert destructive.trace.sample == 3  # -0.695; the other wrong one sums up to 0.495 - 0.995
    assert needless.trace.sample == 1  # 0.1 * (0.99 * 2 - 5)
    assert needless.trace.needless == pytest.approx(-0.302)
    assert random_one.trace in TRACES
    assert [other.sample for other in breakthrough.others] == [0, 2]
    assert choose(TRACES, "frozen") == choose(list(TRACES), "frozen")


def test_a_needless_paragraph_begins_where_the_potential_is_highest():
    assert TRACES[0].needless == pytest.approx(0.1 * (0.99 * 4 - 4))
    assert trace(0, 1.0, 0.0, 4.0).needless == 0.0  # ends at the top
    assert trace(0, 1.0, -1.0, -2.0, 4.0).needless == 0.0  # discouraged, but not at the top


def test_a_rule_that_nothing_meets_says_so():
    picks = choose([trace(0, 0.0, 0.0, 1.0)], "frozen")
    assert [pick.trace is None for pick in picks] == [True, False, True, False]
    assert "No rollout of the last kept step is like that." in picks_markup(picks)
    assert all(pick.trace is None for pick in choose([], "frozen"))


def test_numbers_colours_and_curves_follow_the_shaping():
    page = str(picks_markup(choose([trace(0, 1.0, 0.0, 5.0, 2.0)], "frozen")))
    assert "+0.495" in page
    assert "−0.302" in page
    assert re.search(r'para-text up" role="cell" style="--strength:0.99"', page)
    assert re.search(r'para-text down" role="cell" style="--strength:0.60"', page)
    assert '<path class="phi" d="M4.0 0L96.0 100"/>' in page  # from potential 0 to 5, the whole width
    assert "0.00 → 2.00" in page


def test_text_of_the_model_is_escaped():
    page = str(picks_markup(choose([trace(0, 1.0, 0.0, 5.0, text="<script>alert(1)</script>")], "frozen")))
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "&lt;i&gt;3&lt;/i&gt;" in page
    assert "&lt;solution&gt;x&lt;/solution&gt;" in page


def test_traces_are_read_from_the_last_kept_step_of_the_shaped_rollouts(finished_run):
    path = finished_run / "rl/frozen/seed0/rollouts.parquet"
    traces = read_traces(path)
    assert [(t.step, t.sample) for t in traces] == [(40, sample) for sample in range(4)]
    row = pd.read_parquet(path).query("step == 40 and sample == 1").iloc[0]
    assert traces[1].shaping == [row["paragraphs"][0]["shaping"]]
    assert traces[1].bank[0].likelihoods == (-2.0, -0.5)
    assert traces[1].bank[1].likelihoods == (-1.0, -1.5)
    assert traces[1].tail == "</reasoning>\n<solution>3 + 4</solution>"
    assert read_traces(finished_run / "rl/baseline/seed0/rollouts.parquet") == []


def test_the_report_shows_traces_of_each_main_arm_that_shapes(finished_run):
    page = (finished_run / "report.html").read_text()
    signal = re.search(r'<section id="signal".*?</section>', page, re.DOTALL).group(0)
    assert signal.count('<div class="traces">') == 2
    for title in ("A breakthrough", "A destructive trace", "A needless continuation", "A random trace"):
        assert signal.count(f"<summary>{title}</summary>") == 2
    assert "&lt;b&gt;4&lt;/b&gt;" in signal
    assert "Traces of training: No guard" not in signal


def test_signs_are_typographic():
    assert (signed(-0.1), signed(0.0), nats(-1.234)) == ("−0.100", "+0.000", "−1.23")
