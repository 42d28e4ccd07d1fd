"""The playground inside the report, in a real browser."""

import pytest
from selenium.webdriver.common.by import By

from stepcredit.studies.two_token import METHODS, Setting, push


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
