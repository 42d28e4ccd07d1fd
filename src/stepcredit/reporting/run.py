"""A finished run as the sections of the report see it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from stepcredit.config import Config
from stepcredit.provenance.errors import UserError
from stepcredit.reporting.accessor import Tables
from stepcredit.reporting.blocks import Cell, Panel, Table
from stepcredit.reporting.layout import RunLayout
from stepcredit.reporting.svg import inline
from stepcredit.settings.arm import ArmSettings


@dataclass(frozen=True)
class Run:
    """Configuration and files of a run, and where the report will stand.

    Attributes:
        config: the merged configuration.
        layout: paths of the files.
        page: path of the report, from which links start.
    """

    config: Config
    layout: RunLayout
    page: Path

    @cached_property
    def tables(self) -> Tables:
        return Tables(self.layout.tables)

    @property
    def main_arms(self) -> dict[str, ArmSettings]:
        """The arms that are compared throughout; the others ask a question of their own."""
        return {name: arm for name, arm in self.config.arms.items() if arm.question is None}

    @cached_property
    def claims(self) -> dict[str, Any]:
        """claims.json: the rules, and one record a claim."""
        content: dict[str, Any] = self._json(self.layout.claims)
        return content

    @cached_property
    def alt(self) -> dict[str, str]:
        """Alt text of each figure."""
        content: dict[str, str] = self._json(self.layout.figures / "alt.json")
        return content

    @cached_property
    def manifests(self) -> list[tuple[str, dict[str, Any]]]:
        """(path under the results, content) of each manifest; one that is no JSON mapping is refused."""
        found = []
        for path in self.layout.manifests():
            content = self._json(path)
            if not isinstance(content, dict):
                raise UserError(f"{path}: is not a JSON object")
            found.append((path.relative_to(self.layout.root).as_posix(), content))
        return found

    def panel(self, name: str, caption: str = "") -> Panel:
        """A figure, ready for the page."""
        path = self.layout.figures / f"{name}.svg"
        if not path.is_file():
            raise UserError(f"{path}: missing; it is written by `stepcredit figures`")
        markup = inline(path.read_text(encoding="utf-8"), name, self.alt.get(name, name))
        return Panel(markup, caption, self.link(path))

    def table(self, name: str, caption: str, header: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Table:
        """A table of the page that shows (part of) `name`.csv."""
        return Table(caption, header, rows, self.link(self.layout.tables / f"{name}.csv"), self.command(name))

    def command(self, table: str) -> str:
        """What remakes a table."""
        return f"snakemake --cores all {self.config.outdir}/tables/{table}.csv"

    def link(self, path: Path) -> str:
        """Address of a file relative to the page."""
        return Path(os.path.relpath(path, self.page.parent)).as_posix()

    def _json(self, path: Path) -> Any:
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise UserError(f"{path}: missing; the stage that writes it has not run") from None
        except json.JSONDecodeError as error:
            raise UserError(f"{path}: is not JSON ({error})") from error
