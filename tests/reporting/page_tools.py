"""What the tests of the page measure in the browser."""

from __future__ import annotations

import base64
from importlib.resources import files
from pathlib import Path
from typing import Any

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
TOLERANCE = 1.5
"""Pixels that two labels may share: the boxes of glyphs are higher than their ink."""

WIDER = """
const limit = document.documentElement.clientWidth + 1;
const paper = matchMedia("print").matches;
const clipped = (node) => !paper && node && node.closest(".scroll, pre, .skip") !== null;
return [...document.body.querySelectorAll("*")]
  .filter((node) => !clipped(node.parentElement) && !node.closest(".skip"))
  .filter((node) => node.getClientRects().length && node.getBoundingClientRect().right > limit)
  .map((node) => `${node.tagName} ${node.getAttribute("class") || ""} ${(node.textContent || "").trim().slice(0, 40)}`);
"""

LABELS = """
return [...document.querySelectorAll("figure")].filter((figure) => figure.getClientRects().length).map((figure) =>
  [...figure.querySelectorAll("svg text")].map((node) => {
    const box = node.getBoundingClientRect();
    return [node.textContent, box.left, box.top, box.right, box.bottom];
  }));
"""

AXE = """
const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ["violations"]}).then((found) => done(found.violations.map((rule) =>
  `${rule.id}: ${rule.help}: ${rule.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`)));
"""


def show(browser: Any, *, width: int, scheme: str = "light", media: str = "screen") -> None:
    """Make the window `width` CSS pixels wide, in a colour scheme, as a screen or as paper."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})


def unfold(browser: Any) -> None:
    browser.execute_script("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")


def screenshot(browser: Any, name: str) -> None:
    """The whole page as build/screenshots/{name}.png, to be looked at."""
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    (SCREENSHOTS / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))


def overlapping(labels: list[list[Any]]) -> list[tuple[str, str]]:
    """Pairs of labels (text, left, top, right, bottom) whose boxes share more than the tolerance."""
    pairs = []
    for index, (text, left, top, right, bottom) in enumerate(labels):
        for other, left_2, top_2, right_2, bottom_2 in labels[index + 1 :]:
            across = min(right, right_2) - max(left, left_2)
            down = min(bottom, bottom_2) - max(top, top_2)
            if across > TOLERANCE and down > TOLERANCE:
                pairs.append((text, other))
    return pairs


def accessibility_faults(browser: Any) -> list[str]:
    """What axe finds wrong with the page as it stands, each with examples."""
    browser.execute_script(files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    faults: list[str] = browser.execute_async_script(AXE)
    return faults
