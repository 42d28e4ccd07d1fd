"""The report: one HTML file with everything in it."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from stepcredit.config import Config
from stepcredit.provenance.errors import UserError
from stepcredit.provenance.files import atomic_path
from stepcredit.reporting.blocks import Section
from stepcredit.reporting.layout import RunLayout
from stepcredit.reporting.palette import DARK, css_name
from stepcredit.reporting.run import Run
from stepcredit.reporting.sections import SECTIONS
from stepcredit.reporting.templating import environment

LARGEST = 5_000_000
"""Bytes that the page may not exceed."""


def write_report(config: Config, results: Path, out: Path) -> None:
    """Build the page from the tables, claims, figures and manifests of a run.

    Raises:
        UserError: a file is missing or malformed, or the page would be too large to send around.
    """
    run = Run(config, RunLayout(results), out)
    sections = [found for build in SECTIONS if (found := build(run))]
    page = render(run.config.report.title, sections, run.config.statistics.confidence, run.link(run.layout.claims))
    size = len(page.encode("utf-8"))
    if size > LARGEST:
        raise UserError(f"{out}: would be {size:,} bytes, more than the {LARGEST:,} a report may have")
    with atomic_path(out) as temporary:
        temporary.write_text(page, encoding="utf-8")


def render(title: str, sections: list[Section], confidence: float, claims: str = "claims.json") -> str:
    """The page as text; everything but the markup of figures is escaped.

    Args:
        confidence: of the intervals.
        claims: address of the claims relative to the page.
    """
    templates = environment()
    source = templates.loader
    assert source is not None
    style, script = (Markup(source.get_source(templates, name)[0]) for name in ("report.css", "report.js"))
    dark = Markup("".join(f"{css_name(light)}:{dark};" for light, dark in DARK.items()))
    template = templates.get_template("report.html.j2")
    return template.render(
        title=title,
        sections=sections,
        claims=claims,
        confidence=f"{100 * confidence:g} %",
        style=style,
        script=script,
        dark_figures=dark,
    )
