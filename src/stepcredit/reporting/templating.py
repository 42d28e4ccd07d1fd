"""The templates of the page: everything that is not markup already is escaped."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined


def environment() -> Environment:
    return Environment(
        loader=PackageLoader("stepcredit.reporting", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
