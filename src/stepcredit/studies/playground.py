"""The two-token playground as an HTML fragment: sliders, and a bar for each method against the on-policy
target.

The fragment needs nothing from outside, can be put into any page, and its first numbers come from
`two_token`, so that it reads without JavaScript; the script then computes by the same formulas and constants.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import jinja2

from stepcredit.losses import LOSSES, DPPOWithKL, MaskedImportanceSampling, PPOClip
from stepcredit.studies.two_token import (
    A_IS_BETTER,
    BOUNDS,
    METHODS,
    SKEWED,
    SLIGHTLY_OFF,
    Setting,
    push,
    target,
)

PRESETS = (
    ("slightly-off", "Sampler slightly off", SLIGHTLY_OFF),
    ("skewed", "Sampler badly skewed", SKEWED),
    ("a-is-better", "A is right, B is wrong", A_IS_BETTER),
)
AXES = (0.25, 0.5, 1.0, 2.0)
"""Half-widths that the axis takes: the smallest that holds every bar."""

TEMPLATE = Path(__file__).with_name("playground.html.j2")


@dataclasses.dataclass(frozen=True)
class Slider:
    """One slider: its name in `Setting`, what it says, and its range."""

    name: str
    label: str
    low: float
    high: float
    step: float


SLIDERS = (
    Slider("p", "Trainer’s probability of A", 0.01, 0.99, 0.01),
    Slider("q", "Sampler’s probability of A", 0.01, 0.99, 0.01),
    Slider("reward_a", "Reward of A", -1.0, 1.0, 0.1),
    Slider("reward_b", "Reward of B", -1.0, 1.0, 0.1),
    Slider("cap", "TIS cap", 1.0, 10.0, 0.5),
)


def playground_html(setting: Setting = SLIGHTLY_OFF) -> str:
    """One `<div id="playground-root">` with its style and script, to be put inside a section of a page.

    Colours come from the page's --ink, --paper, --accent, --grid and --muted where it defines them.
    """
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    goal = target(setting)
    pushes = {method: push(method, setting) for method in METHODS}
    return template.render(
        setting=dataclasses.asdict(setting),
        constant=setting.reward_a == setting.reward_b,
        sliders=SLIDERS,
        presets=[(key, label, dataclasses.asdict(preset)) for key, label, preset in PRESETS],
        rows=[(method, LOSSES[method].label, value) for method, value in pushes.items()],
        target=goal,
        axis=axis_half_width([goal, *pushes.values()]),
        constants=_constants(),
        signed=signed,
    )


def axis_half_width(values: list[float]) -> float:
    """The smallest of AXES that holds every value."""
    return next((axis for axis in AXES if axis >= max(map(abs, values))), AXES[-1])


def signed(value: float) -> str:
    """Three decimals with a sign, and no sign on a zero: +0.100, 0.000, −0.250."""
    if abs(value) < 0.0005:
        return "0.000"
    return f"{'+' if value > 0 else '−'}{abs(value):.3f}"


def _constants() -> dict[str, Any]:
    """What the script needs beside the sliders: the settings of the losses that have bounds, and the axes."""
    return {
        "mis": dataclasses.asdict(MaskedImportanceSampling(**BOUNDS["mis"])),
        "ppo_clip": dataclasses.asdict(PPOClip(**BOUNDS["ppo_clip"])),
        "dppo_kl": dataclasses.asdict(DPPOWithKL(**BOUNDS["dppo_kl"])),
        "axes": AXES,
    }
