"""A real browser for the pages, and which tests stay together when two processes share the suite."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import LoadFileScheduling

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


class ByRun(LoadFileScheduling):
    """A module, or a folder that shares a run, stays in one process (`pytest -n 2 --dist loadfile`)."""

    def _split_scope(self, nodeid: str) -> str:
        module = Path(nodeid.split("::", 1)[0])
        return str(module.parent if module.parent.name in TOGETHER else module)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByRun:
    return ByRun(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The folder that takes longest comes first, so that neither process waits for it at the end."""
    items.sort(key=lambda item: item.path.parent.name != TOGETHER[0])


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
