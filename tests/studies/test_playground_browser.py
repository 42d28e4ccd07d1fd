"""The fragment in a real browser: the script computes what Python computes, by mouse, keyboard and preset."""

import json
import random

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from stepcredit.studies.playground import AXES, playground_html, signed
from stepcredit.studies.two_token import A_IS_BETTER, METHODS, SKEWED, SLIGHTLY_OFF, Setting, push, target

SETTINGS = [
    Setting(p=0.5, q=0.9, reward_a=1.0, reward_b=1.0, cap=2.0),
    Setting(p=0.6, q=0.5, reward_a=1.0, reward_b=-1.0, cap=1.0),  # on PPO's bounds
    Setting(p=0.3, q=0.6, reward_a=-0.5, reward_b=0.2, cap=4.0),  # on MIS's lower bound
    Setting(p=0.7, q=0.5, reward_a=0.4, reward_b=0.0, cap=2.5),  # on DPPO's bound
    Setting(p=0.01, q=0.99, reward_a=1.0, reward_b=-1.0, cap=10.0),
    Setting(p=0.99, q=0.01, reward_a=-1.0, reward_b=-1.0, cap=1.5),
]


@pytest.fixture
def page(browser, tmp_path):
    """The fragment in a section of an otherwise empty page."""
    file = tmp_path / "page.html"
    file.write_text(
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Playground</title>'
        '<link rel="icon" href="data:,">'
        f"<section>{playground_html()}</section></html>",
        encoding="utf-8",
    )
    browser.get(file.as_uri())
    yield browser
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def element(page, name: str):
    return page.find_element(By.ID, f"playground-{name}")


def move(page, setting: Setting) -> None:
    """Put every slider where `setting` says, as a mouse would: new value, then an input event."""
    constant = setting.reward_a == setting.reward_b
    if element(page, "constant").is_selected() != constant:
        element(page, "constant").click()
    for name, value in vars(setting).items():
        page.execute_script(
            "arguments[0].value = arguments[1];arguments[0].dispatchEvent(new Event('input', {bubbles: true}))",
            element(page, name),
            value,
        )


def assert_shows(page, setting: Setting) -> None:
    """Numbers and bars are those of the Python formulas."""
    goal = target(setting)
    expected = {method: push(method, setting) for method in METHODS}
    axis = next(a for a in AXES if a >= max(abs(goal), *map(abs, expected.values())) - 1e-12)
    for method, value in expected.items():
        row = element(page, f"row-{method}")
        assert float(row.get_attribute("data-value")) == pytest.approx(value, abs=1e-9), (method, setting)
        numbers = [cell.text for cell in row.find_elements(By.CSS_SELECTOR, "td.pg-number")]
        assert numbers == [signed(value), signed(value - goal)]
        track = row.find_element(By.CSS_SELECTOR, ".pg-track").rect
        bar = row.find_element(By.CSS_SELECTOR, ".pg-bar").rect
        middle, half = track["x"] + track["width"] / 2, track["width"] / 2
        end = bar["x"] + bar["width"] if value >= 0 else bar["x"]
        assert (end - middle) / half * axis == pytest.approx(value, abs=0.01), (method, setting)
        mark = row.find_element(By.CSS_SELECTOR, ".pg-target").rect
        assert (mark["x"] + 1 - middle) / half * axis == pytest.approx(goal, abs=0.02)
    assert element(page, "target").find_element(By.CSS_SELECTOR, "[data-update]").text == signed(goal)


def test_before_anything_moves_the_page_shows_pythons_numbers(page):
    assert_shows(page, SLIGHTLY_OFF)


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_moving_the_sliders_gives_the_python_formulas(page, setting):
    move(page, setting)
    assert_shows(page, setting)


def test_the_script_agrees_with_python_at_random_settings(page):
    draw = random.Random(0)
    for _ in range(40):
        setting = Setting(
            p=draw.randint(1, 99) / 100,
            q=draw.randint(1, 99) / 100,
            reward_a=draw.randint(-10, 10) / 10,
            reward_b=draw.randint(-10, 10) / 10,
            cap=draw.randint(2, 20) / 2,
        )
        move(page, setting)
        shown = page.execute_script(
            "return Object.fromEntries([...document.querySelectorAll('tr[data-method]')]"
            ".map((row) => [row.dataset.method, Number(row.dataset.value)]))"
        )
        assert shown == pytest.approx({method: push(method, setting) for method in METHODS}, abs=1e-9), setting


def test_arrow_keys_move_a_slider(page):
    element(page, "q").send_keys(Keys.ARROW_RIGHT * 5)
    assert element(page, "q-value").text == "0.65"
    assert_shows(page, Setting(q=0.65))
    assert signed(push("reinforce", Setting(q=0.65))) == "+0.150"


@pytest.mark.parametrize(
    ("preset", "setting"), [("slightly-off", SLIGHTLY_OFF), ("skewed", SKEWED), ("a-is-better", A_IS_BETTER)]
)
def test_presets_set_every_slider(page, preset, setting):
    move(page, Setting(p=0.2, q=0.3, reward_a=-1.0, reward_b=0.5, cap=7.0))
    element(page, f"preset-{preset}").send_keys(Keys.ENTER)
    assert_shows(page, setting)


def test_a_constant_reward_ties_b_to_a_and_lets_it_go_again(page):
    assert not element(page, "reward_b").is_enabled()
    element(page, "reward_a").send_keys(Keys.ARROW_LEFT * 5)
    assert_shows(page, Setting(reward_a=0.5, reward_b=0.5))
    element(page, "constant").send_keys(Keys.SPACE)
    element(page, "reward_b").send_keys(Keys.ARROW_LEFT)
    assert_shows(page, Setting(reward_a=0.5, reward_b=0.4))


def test_nothing_is_fetched(page):
    events = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    sent = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert sent
    assert all(url.startswith(("file:", "data:", "chrome:", "about:")) for url in sent), sent


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground_in_light_and_dark(page, scheme):
    page.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    ink, paper = page.execute_script(
        "const style = getComputedStyle(document.getElementById('playground-root'));"
        "return [style.color, style.backgroundColor]"
    )
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    light = max(luminance(ink), luminance(paper))
    dark = min(luminance(ink), luminance(paper))
    assert (light + 0.05) / (dark + 0.05) > 7
    assert (luminance(paper) < 0.1) == (scheme == "dark")


def luminance(color: str) -> float:
    """WCAG relative luminance of "rgb(r, g, b)"."""
    channels = [int(part) / 255 for part in color.removeprefix("rgb(").removesuffix(")").split(",")]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
