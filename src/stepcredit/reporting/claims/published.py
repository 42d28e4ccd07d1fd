"""What the write-ups publish (config/published.yaml)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import ValidationError

from stepcredit.provenance.errors import UserError
from stepcredit.settings.section import Section


class Source(Section):
    """A write-up, and the model and scale of its numbers."""

    title: str
    model: str
    scale: str


class Mark(Section):
    """A published value that a figure shows as a dashed mark."""

    label: str
    arm: str
    metric: str
    step: int | Literal["plateau"]
    value: float
    section: str


class PublishedClaim(Section):
    """A claim, what was published for it, what its rule compares with, and the command that would test it."""

    source: str
    section: str
    text: str
    published: str
    numbers: dict[str, Any]
    command: str


class Published(Section):
    sources: dict[str, Source]
    marks: list[Mark]
    claims: dict[int, PublishedClaim]


def read_published(path: Path) -> Published:
    """Read and check the published numbers.

    Raises:
        UserError: the file is missing or does not validate.
    """
    try:
        return Published.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise UserError(f"{path}: missing; it holds the published numbers (--published)") from None
    except (yaml.YAMLError, ValidationError) as error:
        raise UserError(f"{path}: {' '.join(str(error).split())}") from error
