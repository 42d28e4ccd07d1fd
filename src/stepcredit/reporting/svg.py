"""Figures put into the page: ids made unique, colours that follow the theme, no address left in."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

from stepcredit.reporting.palette import DARK, css_name

_HEAD = re.compile(r"^.*?(?=<svg)", re.DOTALL)
_METADATA = re.compile(r"<metadata>.*?</metadata>\s*", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->\s*", re.DOTALL)
_OPENING = re.compile(r"<svg\b[^>]*>")
_VIEW_BOX = re.compile(r'viewBox="([^"]*)"')


def inline(text: str, name: str, alt: str) -> Markup:
    """An SVG file as markup for an HTML page.

    Args:
        text: what Matplotlib wrote.
        name: prefix of the ids, unique in the page (two figures share ids otherwise).
        alt: what the figure says, for those who do not see it.
    """
    text = _COMMENT.sub("", _METADATA.sub("", _HEAD.sub("", text, count=1)))
    view_box = _VIEW_BOX.search(text)
    opening = (
        f'<svg xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="{view_box.group(1) if view_box else ""}"'
        f' role="img" aria-label="{escape(alt)}">'
    )
    text = _OPENING.sub(lambda _: opening, text, count=1)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", text)
    for colour in DARK:
        text = text.replace(f": {colour}", f": var({css_name(colour)}, {colour})")
    return Markup(text.strip())
