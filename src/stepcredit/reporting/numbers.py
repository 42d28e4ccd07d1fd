"""How numbers are written: one way for the whole report."""

from __future__ import annotations

import math

from stepcredit.evaluation.statistics import Interval

MINUS = "−"

UNITS = {
    "fraction": (100.0, 1, "\u00a0%"),
    "difference": (100.0, 1, "\u00a0points"),
    "ratio": (1.0, 2, "\u00a0×"),
    "tokens": (1.0, 1, "\u00a0tokens"),
    "token difference": (1.0, 1, "\u00a0tokens"),
    "seconds": (1.0, 2, "\u00a0s"),
    "number": (1.0, 3, ""),
}
"""Factor, decimals and suffix of each unit; a difference is signed."""


def number(value: float | None, unit: str = "number", suffix: bool = True) -> str:
    """A value in `unit`, with its sign where the unit is a difference; a dash where there is none."""
    if value is None or math.isnan(value):
        return "–"
    factor, decimals, ending = UNITS[unit]
    text = f"{abs(value * factor):,.{decimals}f}".replace(",", "\u202f")
    sign = "" if float(text.replace("\u202f", "")) == 0 else MINUS if value < 0 else ""
    if "difference" in unit and not sign and value > 0 and float(text.replace("\u202f", "")) != 0:
        sign = "+"
    return f"{sign}{text}{ending if suffix else ''}"


def bounds(interval: Interval, unit: str = "number") -> str:
    """The interval alone: `[51.2, 58.0]`."""
    low, high = (number(end, unit, suffix=False) for end in (interval.low, interval.high))
    return f"[{low},\u00a0{high}]"


def with_interval(interval: Interval, unit: str = "number") -> str:
    """`54.7 % [51.2, 58.0]`."""
    return f"{number(interval.mean, unit)} {bounds(interval, unit)}"


def rate(value: float) -> str:
    """A learning rate: `1.5e−4`."""
    mantissa, exponent = f"{value:.1e}".split("e")
    sign = MINUS if int(exponent) < 0 else ""
    return f"{mantissa.removesuffix('.0')}e{sign}{abs(int(exponent))}"


def count(value: float) -> str:
    """A whole number with thin spaces between thousands."""
    return f"{value:,.0f}".replace(",", "\u202f")


def duration(seconds: float) -> str:
    """`38 s`, `12 min`, `3.4 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def joined(parts: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"
