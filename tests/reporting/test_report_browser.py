"""The report as people meet it: phone, laptop and paper, light and dark, by mouse and by keyboard."""

import base64
from urllib.parse import unquote, urlparse

import pytest
from page_tools import LABELS, WIDER, accessibility_faults, overlapping, screenshot, show, unfold
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from stepcredit.studies.two_token import METHODS, Setting, push

PHONE, LAPTOP, WIDE = 390, 1280, 1600
PAPER = 673
"""A4 between its margins, in CSS pixels."""


@pytest.fixture
def page(browser, finished_run):
    """The report of a made-up run, freshly opened; the window is put back afterwards."""
    browser.get((finished_run / "report.html").as_uri())
    yield browser
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("folded", [True, False], ids=["folded", "unfolded"])
@pytest.mark.parametrize(
    ("width", "media"), [(PHONE, "screen"), (LAPTOP, "screen"), (WIDE, "screen"), (PAPER, "print")]
)
def test_nothing_is_wider_than_the_page(page, width, media, folded):
    show(page, width=width, media=media)
    if not folded:
        unfold(page)
    screenshot(page, f"{media}-{width}{'' if folded else '-unfolded'}")
    wider = page.execute_script(WIDER)
    assert wider == []
    assert page.execute_script("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [PHONE, LAPTOP])
def test_no_two_labels_of_a_figure_overlap(page, width):
    show(page, width=width)
    unfold(page)
    figures = page.execute_script(LABELS)
    assert sum(map(len, figures)) > 100
    assert [pair for labels in figures for pair in overlapping(labels)] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, LAPTOP])
def test_an_accessibility_checker_finds_nothing(page, width, scheme):
    show(page, width=width, scheme=scheme)
    unfold(page)
    screenshot(page, f"{scheme}-{width}")
    assert accessibility_faults(page) == []


def test_every_figure_says_its_finding_to_those_who_do_not_see_it(page):
    alts = [svg.get_attribute("aria-label") for svg in page.find_elements(By.CSS_SELECTOR, "figure svg")]
    assert len(alts) > 10
    assert all(alt and any(character.isdigit() for character in alt) for alt in alts)


def reached(page, presses: int) -> list[str]:
    """What the tab key reaches, in order, from the top of the page."""
    page.execute_script("document.activeElement.blur(); window.scrollTo(0, 0)")
    found = []
    for _ in range(presses):
        page.switch_to.active_element.send_keys(Keys.TAB)
        node = page.switch_to.active_element
        found.append(node.get_attribute("id") or node.get_attribute("class") or f"{node.tag_name} {node.text}")
    return found


def test_the_tab_key_reaches_contents_theme_and_folded_parts(page):
    show(page, width=LAPTOP)
    names = reached(page, 25)
    assert names[0] == "skip"
    assert {"a Claims", "a Arms", "theme"} <= set(names)
    assert any(name.startswith("summary") for name in names)


def test_on_a_phone_contents_and_theme_are_reached_too(page):
    show(page, width=PHONE)
    names = reached(page, 4)
    assert "summary Contents" in names
    assert "theme" in names


def test_the_enter_key_unfolds_and_changes_the_theme(page):
    show(page, width=LAPTOP, scheme="light")
    fold = page.find_element(By.CSS_SELECTOR, "main details.fold > summary")
    fold.send_keys(Keys.ENTER)
    assert page.execute_script("return arguments[0].parentElement.open", fold)
    paper = "return getComputedStyle(document.body).backgroundColor"
    before = page.execute_script(paper)
    page.find_element(By.ID, "theme").send_keys(Keys.ENTER)
    after = page.execute_script(paper)
    assert before == "rgb(255, 255, 255)"
    assert after == "rgb(22, 25, 29)"


def test_the_page_is_there_in_less_than_two_seconds(browser, finished_run):
    times = []
    for _ in range(3):
        browser.get((finished_run / "report.html").as_uri())
        times.append(browser.execute_script("return performance.getEntriesByType('navigation')[0].loadEventEnd"))
    assert min(times) < 2000


def test_pointing_at_a_mark_tells_its_value(page, finished_run):
    from stepcredit.reporting.accessor import Tables
    from stepcredit.reporting.numbers import with_interval

    show(page, width=LAPTOP)
    last = Tables(finished_run / "tables").interval("arms", arm="frozen", step=40, metric="pass@1")
    expected = f"Frozen scorer, step 40: {with_interval(last, 'fraction')}"
    hit = page.execute_script(
        "const title = [...document.querySelectorAll('figure svg title')].find((t) => t.textContent === arguments[0]);"
        "if (!title) return 'no such title';"
        "title.parentElement.scrollIntoView({block: 'center', behavior: 'instant'});"
        "const box = title.parentElement.getBoundingClientRect();"
        "const top = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);"
        "return top && top.closest('g.mark') ? top.closest('g.mark').querySelector('title').textContent : 'missed';",
        expected,
    )
    assert hit == expected


def test_the_curves_of_training_tell_their_values_too(page):
    titles = page.execute_script("return [...document.querySelectorAll('figure svg title')].map((t) => t.textContent)")
    assert any(title.startswith("Baseline, step 5: ") for title in titles)
    assert len(titles) > 100


def test_each_table_and_figure_links_to_its_file(page, finished_run):
    for holder, kind in ((".table", ".csv"), (".panel", ".svg")):
        for node in page.find_elements(By.CSS_SELECTOR, holder):
            links = [link.get_attribute("href") for link in node.find_elements(By.CSS_SELECTOR, "a[href]")]
            if holder == ".panel" or links:
                assert any(link.endswith(kind) for link in links), node.text[:80]
    for link in page.find_elements(By.CSS_SELECTOR, "a[href^='tables/'], a[href^='figures/'], footer a"):
        path = finished_run / unquote(urlparse(link.get_attribute("href")).path)
        assert path.is_file(), path


def test_printing_keeps_every_section_and_no_navigation(page):
    pdf = base64.b64decode(page.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})["data"])
    assert pdf.startswith(b"%PDF")
    show(page, width=PAPER, media="print")
    assert not page.find_element(By.CSS_SELECTOR, "nav.aside").is_displayed()
    assert all(section.is_displayed() for section in page.find_elements(By.CSS_SELECTOR, "main > section"))


def test_a_slider_moves_the_bars_and_the_page_says_what_python_says(browser, finished_run):
    browser.get((finished_run / "report.html").as_uri())
    rows = {method: browser.find_element(By.ID, f"playground-row-{method}") for method in METHODS}
    before = rows["reinforce"].find_element(By.CSS_SELECTOR, ".pg-bar").rect
    assert float(rows["reinforce"].get_attribute("data-value")) == pytest.approx(0.1)
    browser.execute_script(
        "arguments[0].value = 0.9;arguments[0].dispatchEvent(new Event('input', {bubbles: true}))",
        browser.find_element(By.ID, "playground-q"),
    )
    for method, row in rows.items():
        assert float(row.get_attribute("data-value")) == pytest.approx(push(method, Setting(q=0.9)), abs=1e-9)
    after = rows["reinforce"].find_element(By.CSS_SELECTOR, ".pg-bar").rect
    assert after["width"] > 1.5 * before["width"]
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
