"""A real browser for the pages, and which tests stay together when two processes share the suite."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


TOGETHER = ("workflow", "reporting")
"""Folders whose tests share one finished run: it is made once, by the process that has the folder. Longest first."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A module, or a folder that shares a run, stays in one process (`pytest -n 2 --dist loadgroup`)."""
    items.sort(key=lambda item: item.path.parent.name != TOGETHER[0])
    for item in items:
        folder = item.path.parent
        item.add_marker(pytest.mark.xdist_group(str(folder if folder.name in TOGETHER else item.path)))


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """Headless Chromium, one for all tests."""
    binary, driver = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.fail("the page tests need a browser: apt-get install -y chromium chromium-driver", pytrace=False)
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = binary
    profile = tmp_path_factory.mktemp("chromium")
    for flag in (*FLAGS, f"--user-data-dir={profile}", "--window-size=1000,1200"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver))
    yield chrome
    chrome.quit()
