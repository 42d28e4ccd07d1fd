import re
from html.parser import HTMLParser

import pandas as pd
import pytest
from fabricate import PUBLISHED, build, fabricate, write_config
from typer.testing import CliRunner

from stepcredit.config_files import load_config
from stepcredit.evaluation.statistics import Interval
from stepcredit.provenance.errors import UserError
from stepcredit.provenance.manifest import read_manifest
from stepcredit.reporting.accessor import Tables
from stepcredit.reporting.blocks import Cell, Code, Prose, Section, Table
from stepcredit.reporting.numbers import bounds, count, duration, joined, number, rate, with_interval
from stepcredit.reporting.report import render, write_report
from stepcredit.reporting.sections import SECTIONS


class Page(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, text):
        super().__init__()
        self.addresses, self.ids, self.anchors, self.text, self.tags = [], [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            if name in {"src", "href", "xlink:href", "action", "data", "srcset", "poster"}:
                (self.anchors if value.startswith("#") else self.addresses).append(value)

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def page(finished_run):
    return (finished_run / "report.html").read_text(encoding="utf-8")


def test_the_page_loads_nothing_and_links_only_to_its_files(page):
    parsed = Page(page)
    outside = [
        address
        for address in parsed.addresses
        if not re.fullmatch(r"tables/\w+\.csv|figures/\w+\.svg|claims\.json|data:,", address)
    ]
    assert outside == []
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)


def test_every_link_leads_somewhere(page, finished_run):
    parsed = Page(page)
    assert {anchor.removeprefix("#") for anchor in parsed.anchors} <= set(parsed.ids)
    assert len(parsed.ids) == len(set(parsed.ids))
    for address in parsed.addresses:
        if not address.startswith("data:"):
            assert (finished_run / address).is_file()


def test_model_text_is_shown_and_never_run(page):
    assert "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;" in page
    assert "<script>alert" not in page
    assert Page(page).tags.count("script") == 2  # the report's and the playground's


def test_the_page_is_small_enough_to_send(page):
    assert len(page.encode()) < 5_000_000


def test_two_builds_are_the_same_bytes(finished_run, rebuilt):
    for path in sorted(finished_run.rglob("*")):
        if path.suffix in {".csv", ".svg", ".json", ".html"}:
            assert (rebuilt / path.relative_to(finished_run)).read_bytes() == path.read_bytes(), path.name


def test_the_numbers_of_the_tables_are_in_the_page(page, finished_run):
    tables = Tables(finished_run / "tables")
    shown = "".join(Page(page).text)
    for metric in ("pass@1", "pass@4"):
        for row in tables.rows("arms", metric=metric) + tables.rows("paired", metric=metric):
            if row["step"] and row["arm"] != "no_guard":
                assert number(row["mean"], "fraction", suffix=False).lstrip("−") in shown
    for row in tables.rows("funnel"):
        assert count(row["rows"]) in shown
    for row in tables.rows("step_time"):
        assert number(row["seconds_per_step"], "seconds", suffix=False) in shown
    for row in tables.rows("deduplication"):
        assert count(row["unique"]) in shown
    for row in tables.rows("sft"):
        unit = "tokens" if row["metric"] == "length" else "fraction"
        assert bounds(Interval(row["mean"], row["low"], row["high"]), unit) in shown


def test_the_answer_about_the_arms_states_the_paired_difference(page, finished_run):
    paired = Tables(finished_run / "tables").interval("paired", arm="frozen", step=40, metric="pass@1")
    answer = re.search(r'<section id="arms".*?<p class="answer">(.*?)</p>', page, re.DOTALL).group(1)
    assert with_interval(paired, "difference") in answer
    said = answer.split("Frozen scorer ")[1].split("Moving scorer")[0]
    assert said.startswith("shows no clear effect," if not paired.excludes_zero else "is ahead by")


def test_sections_stand_in_the_order_a_reader_needs_and_each_asks_its_question(page):
    keys = re.findall(r'<section id="(\w+)"', page)
    expected = ["claims", "run", "data", "sft", "arms", "signal", "failures", "scoring", "mismatch", "parity"]
    assert keys == [*expected, "provenance"]
    assert len(keys) == len(SECTIONS) == page.count('<p class="question">')


def test_what_was_not_run_is_said_with_its_command(page):
    claims = re.search(r'<section id="claims".*?</section>', page, re.DOTALL).group(0)
    assert "Not run here" in claims
    assert "snakemake --cores all --config" in claims


def test_caveats_are_in_their_places(page):
    assert "mask and KL term are inert" in page
    assert "another model at another scale" in page


def test_provenance_tolerates_manifests_that_hold_less(raw_run):
    root, config = raw_run
    (root / "sft/manifest.json").write_text('{"stage": "sft", "outputs": null, "extra": [1]}')
    build(root, config)
    assert "11 stages left a manifest" in (root / "report.html").read_text()
    (root / "sft/manifest.json").write_text("[]")
    with pytest.raises(UserError, match=r"sft/manifest\.json"):
        write_report(config, root, root / "report.html")


def test_a_run_with_one_arm_and_one_seed_has_a_report(tmp_path):
    arms = {"baseline": {"label": "Baseline", "credit": "group_advantage"}}
    config = fabricate(tmp_path, {"arms": arms, "seeds": [4], "evaluation": {"steps": [0, 40], "pass_k": [1]}})
    build(tmp_path, config)
    page = (tmp_path / "report.html").read_text()
    assert "No arm of this run uses a scorer." in page
    assert "1 arm, 1 seed each" in page


def test_a_run_that_learned_nothing_says_so(raw_run):
    root, config = raw_run
    for path in root.glob("rl/*/seed*/metrics.parquet"):
        frame = pd.read_parquet(path)
        absent = ["mean_ratio", "masked", "entropy", "potential_first", "potential_last", "scorings", "scorings_unique"]
        frame[absent] = None
        frame.to_parquet(path, index=False)
    build(root, config)
    page = (root / "report.html").read_text()
    assert "No training step had an advantage other than zero" in page
    assert "No rollout of this run was shaped" in page
    assert "Training entropy was not logged in this run." in page


def test_a_page_that_is_too_large_is_refused(finished_run, tmp_path, monkeypatch):
    monkeypatch.setattr("stepcredit.reporting.report.LARGEST", 1000)
    with pytest.raises(UserError, match="more than the"):
        write_report(load_config(finished_run / "config.yaml"), finished_run, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_every_text_of_a_block_is_escaped():
    hostile = "<img src=x onerror=alert(1)>"
    blocks = [
        Prose(hostile),
        Code(hostile),
        Table(hostile, [hostile], [[Cell(hostile, hostile)]], hostile, hostile),
    ]
    page = render(hostile, [Section("key", hostile, hostile, hostile, blocks)], 0.95)
    assert "<img" not in page
    assert page.count("&lt;img") >= 10


def test_the_commands_make_the_same_report(raw_run, tmp_path, monkeypatch):
    from stepcredit.cli.reporting import commands
    from stepcredit.reporting.settings import TablesSettings

    root, config = raw_run
    write_config(root / "config.yaml", config)
    settings = TablesSettings.from_config(config).canonical_json()
    tables, published = str(root / "tables"), ["--published", str(PUBLISHED)]
    for arguments in (
        ["tables", "--results", str(root), "--settings", settings, "--out-dir", tables],
        ["claims", "--tables", tables, "--out", str(root / "claims.json"), *published],
        ["figures", "--tables", tables, "--out-dir", str(root / "figures"), *published],
        [
            "report",
            *["--settings", config.canonical_json(), "--results", str(root)],
            *["--out", str(root / "r.html")],
        ],
    ):
        result = CliRunner().invoke(commands, arguments)
        assert result.exit_code == 0, result.output
    assert "<h1>" in (root / "r.html").read_text()
    assert read_manifest(root / "tables/manifest.json").outputs.keys() >= {"tables/arms.csv", "tables/wall_clock.csv"}
    assert read_manifest(root / "claims.manifest.json").outputs.keys() == {"claims.json"}
    assert "figures/alt.json" in read_manifest(root / "figures/manifest.json").outputs
    assert "figures/pass_at_1.svg" in read_manifest(root / "r.manifest.json").inputs
    wrong = CliRunner().invoke(commands, ["tables", "--results", ".", "--settings", "{}", "--out-dir", tables])
    assert isinstance(wrong.exception, UserError)


def test_numbers_are_written_one_way():
    assert number(0.547, "fraction") == "54.7\u00a0%"
    assert number(-0.02, "difference") == "−2.0\u00a0points"
    assert number(0.061, "difference", suffix=False) == "+6.1"
    assert number(-0.0001, "difference", suffix=False) == "0.0"
    assert number(None) == number(float("nan")) == "–"
    assert bounds(Interval(0.5, 0.4, 0.6), "fraction") == "[40.0,\u00a060.0]"
    assert rate(1.5e-4) == "1.5e−4"
    assert rate(5e-3) == "5e−3"
    assert [duration(30), duration(720), duration(3 * 3600)] == ["30 s", "12 min", "3.0 h"]
    assert joined(["a", "b", "c"]) == "a, b and c"
