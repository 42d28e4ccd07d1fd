"""A trace as markup: paragraphs coloured by their shaping, the potential as a curve along them, the bank beside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from stepcredit.reporting.numbers import MINUS
from stepcredit.reporting.templating import environment
from stepcredit.reporting.traces import Answer, Pick, Trace

FULL = 0.5
"""Shaping at which the colour is strongest: beta times the clip, with the write-up's settings."""

WIDTH, HEIGHT = 84, 18
"""Of the small curve of an answer's likelihood."""


def picks_markup(picks: Sequence[Pick]) -> Markup:
    """The picks of one arm, each folded but the first; the other traces of each group folded inside it."""
    template = environment().get_template("traces.html.j2")
    shown = [{"pick": pick, "main": _view(pick.trace), "others": list(map(_view, pick.others))} for pick in picks]
    return Markup(template.render(picks=shown))


def signed(value: float) -> str:
    """`+0.995`, `−0.144`."""
    return f"{MINUS if value < 0 else '+'}{abs(value):.3f}"


def nats(value: float) -> str:
    return f"{MINUS if value < 0 else ''}{abs(value):.2f}"


def _view(trace: Trace | None) -> dict[str, Any] | None:
    """What the template shows of a trace."""
    if trace is None:
        return None
    low, high = min(0.0, *trace.potential), max(0.0, *trace.potential)
    span = (high - low) or 1.0

    def x(potential: float) -> str:
        return f"{4 + 92 * (potential - low) / span:.1f}"

    return {
        "trace": trace,
        "numbers": ", ".join(map(str, trace.nums)),
        "advantage": signed(trace.advantage),
        "total": signed(sum(trace.shaping)),
        "zero": x(0.0),
        "start": nats(trace.potential[0]),
        "end": nats(trace.potential[-1]),
        "paragraphs": [
            {
                "text": paragraph.text.strip("\n"),
                "shaping": signed(paragraph.shaping),
                "side": "down" if paragraph.shaping < 0 else "up",
                "strength": f"{min(1.0, abs(paragraph.shaping) / FULL):.2f}",
                "before": nats(paragraph.before),
                "after": nats(paragraph.after),
                "x1": x(paragraph.before),
                "x2": x(paragraph.after),
            }
            for paragraph in trace.paragraphs
        ],
        "bank": _bank(trace.bank),
        "boundaries": len(trace.potential),
    }


def _bank(bank: Sequence[Answer]) -> list[dict[str, Any]]:
    values = [value for answer in bank for value in answer.likelihoods]
    low, high = min(values, default=0.0), max(values, default=1.0)
    return [
        {
            "answer": answer,
            "curve": _curve(answer.likelihoods, low, high),
            "values": [nats(value) for value in answer.likelihoods],
        }
        for answer in bank
    ]


def _curve(values: Sequence[float], low: float, high: float) -> str:
    """Points of a polyline: the likelihood at each boundary, on a scale that the answers of the bank share."""
    span, last = (high - low) or 1.0, max(1, len(values) - 1)
    return " ".join(
        f"{2 + (WIDTH - 4) * index / last:.1f},{2 + (HEIGHT - 4) * (high - value) / span:.1f}"
        for index, value in enumerate(values)
    )
