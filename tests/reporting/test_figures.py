import json
import re
from pathlib import Path

import pytest

from stepcredit.reporting import names
from stepcredit.reporting.figures import FIGURES
from stepcredit.reporting.figures.style import spread
from stepcredit.reporting.palette import BASELINE, DARK, PHASES, SERIES, arm_colours
from stepcredit.reporting.svg import inline


def test_each_figure_is_there_with_an_alt_text_that_holds_a_number(finished_run):
    alt = json.loads((finished_run / "figures/alt.json").read_text())
    assert list(alt) == [figure.name for figure in FIGURES]
    for name, text in alt.items():
        assert re.search(r"\d", text), name
        assert (finished_run / f"figures/{name}.svg").stat().st_size < 60_000, name


def test_the_alt_text_says_the_number_of_the_table(finished_run):
    from stepcredit.reporting.accessor import Tables
    from stepcredit.reporting.numbers import with_interval

    alt = json.loads((finished_run / "figures/alt.json").read_text())
    paired = Tables(finished_run / "tables").interval("paired", arm="frozen", step=40, metric="pass@1")
    assert with_interval(paired, "difference") in alt["paired_pass_at_1"]


def test_figures_carry_no_date_and_published_values_are_named_as_such(finished_run):
    text = (finished_run / "figures/pass_at_1.svg").read_text()
    assert "dc:date" not in text
    assert "published (Qwen3-0.6B)" in text


def test_an_arm_keeps_its_colour_and_the_baseline_is_grey():
    colours = arm_colours(["first", "baseline", "second"], "baseline")
    assert colours == {"first": SERIES[0], "baseline": BASELINE, "second": SERIES[1]}
    assert {*SERIES, BASELINE, *PHASES.values()} <= set(DARK)


def test_labels_move_apart_no_more_than_they_must():
    assert spread([1.0, 5.0], 1.0) == [1.0, 5.0]
    assert spread([1.0, 1.2], 1.0) == pytest.approx([0.6, 1.6])
    assert spread([3.0, 1.0, 1.0], 1.0) == pytest.approx([0.5, 1.5, 3.0])


def test_inlined_figures_share_no_ids_and_escape_their_alt_text():
    text = '<?xml version="1.0"?><svg viewBox="0 0 1 1"><metadata>http://x</metadata>'
    text += '<defs><path id="m1"/></defs>'
    text += '<use xlink:href="#m1"/><g clip-path="url(#m1)" style="fill: #0072b2"/></svg>'
    markup = inline(text, "one", 'says "3 < 4"')
    assert 'id="one-m1"' in markup
    assert 'href="#one-m1"' in markup
    assert "url(#one-m1)" in markup
    assert "fill: var(--f-0072b2, #0072b2)" in markup
    assert "says &#34;3 &lt; 4&#34;" in markup
    assert "metadata" not in markup


def test_each_figure_has_a_caption_for_the_report_of_snakemake():
    captions = Path(__file__).parents[2] / "report" / "captions"
    assert [name for name in names.FIGURES if not (captions / f"{name}.rst").is_file()] == []
