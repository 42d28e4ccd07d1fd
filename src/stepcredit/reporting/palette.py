"""Colours of arms and ink, in light and dark: the Okabe-Ito palette, the baseline in grey."""

from __future__ import annotations

from collections.abc import Sequence

INK = "#22262b"
MUTED = "#6b7280"
RULE = "#d8dbdf"
PAPER = "#ffffff"
BASELINE = "#4a4f57"
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b58900", "#56b4e9")
"""Okabe-Ito, its yellow left out (too pale on paper) and its orange darkened."""
PHASES = {"generate": "#9aa3ad", "train": "#c3c9cf", "push": "#5d6670", "score": "#e69f00"}
DARK = {
    INK: "#e6e8ea",
    MUTED: "#a3abb5",
    RULE: "#3a4048",
    PAPER: "#16191d",
    BASELINE: "#c4c9cf",
    "#0072b2": "#58b0ea",
    "#d55e00": "#f58a45",
    "#009e73": "#36c79d",
    "#cc79a7": "#e6a3c8",
    "#b58900": "#e0b63c",
    "#56b4e9": "#8fd0f5",
    "#9aa3ad": "#8a939d",
    "#c3c9cf": "#5f6872",
    "#5d6670": "#b9c1c9",
    "#e69f00": "#f0b02e",
}
"""What each colour of a figure becomes on a dark page."""


def arm_colours(arms: Sequence[str], baseline: str) -> dict[str, str]:
    """One colour an arm, by the order of the configuration; the baseline is grey."""
    others = [arm for arm in arms if arm != baseline]
    colours = {arm: SERIES[index % len(SERIES)] for index, arm in enumerate(others)}
    return {arm: colours.get(arm, BASELINE) for arm in arms}


def css_name(colour: str) -> str:
    """The CSS variable that holds a figure colour."""
    return f"--f-{colour.lstrip('#')}"
