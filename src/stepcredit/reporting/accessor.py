"""The tables of a run, looked up by what a row says."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stepcredit.evaluation.statistics import Interval
from stepcredit.reporting.csvfiles import Row, read_rows


class NotRun(Exception):  # noqa: N818 - an outcome, not a fault
    """What was asked for is not in this run; the message says what is missing."""


def interval_of(row: Row) -> Interval:
    """mean, low and high of a row; NaN where it has none."""
    mean, low, high = (float("nan" if row[end] is None else row[end]) for end in ("mean", "low", "high"))
    return Interval(mean, low, high)


@dataclass
class Tables:
    """The CSV files of a directory, read when first asked for."""

    directory: Path
    _read: dict[str, list[Row]] = field(default_factory=dict, repr=False)

    def has(self, name: str) -> bool:
        return (self.directory / f"{name}.csv").is_file()

    def rows(self, name: str, **where: Any) -> list[Row]:
        """The rows of `name`.csv whose columns equal `where`.

        Raises:
            NotRun: there is no such table.
        """
        if name not in self._read:
            if not self.has(name):
                raise NotRun(f"no table {name}.csv in this run")
            self._read[name] = read_rows(self.directory / f"{name}.csv")
        return [row for row in self._read[name] if all(row.get(key) == value for key, value in where.items())]

    def row(self, name: str, **where: Any) -> Row:
        """The one row that `where` describes.

        Raises:
            NotRun: there is none.
            ValueError: there are several.
        """
        rows = self.rows(name, **where)
        if len(rows) > 1:
            raise ValueError(f"{name}.csv: {len(rows)} rows match {where}, expected one")
        if not rows:
            raise NotRun(self._why_absent(name, where))
        return rows[0]

    def interval(self, name: str, **where: Any) -> Interval:
        """mean, low and high of the row that `where` describes.

        Raises:
            NotRun: there is no such row, or it holds no numbers.
        """
        row = self.row(name, **where)
        if any(row[column] is None for column in ("mean", "low", "high")):
            raise NotRun(f"{name}.csv has no value for {_describe(where)}")
        return interval_of(row)

    def steps(self) -> list[int]:
        """The evaluated steps."""
        return sorted({row["step"] for row in self.rows("arms")})

    def arms(self) -> list[Row]:
        """One row an arm, in the order of the configuration: arm, label, baseline, credit, scorer, guard, question."""
        return self.rows("arm_list")

    def main_arms(self) -> list[Row]:
        """The arms that are compared throughout; the others ask a question of their own."""
        return [row for row in self.arms() if row["question"] is None]

    def unguarded_arms(self) -> list[str]:
        """The arms that are shaped by the contrastive potential without a paragraph guard."""
        return [
            str(row["arm"]) for row in self.arms() if row["credit"] == "contrastive_potential" and row["guard"] is None
        ]

    def guard_arms(self) -> list[str]:
        """The main arms and the unguarded ones, in the order of the configuration."""
        wanted = {*(row["arm"] for row in self.main_arms()), *self.unguarded_arms()}
        return [str(row["arm"]) for row in self.arms() if row["arm"] in wanted]

    def baseline(self) -> str:
        return str(self.row("arm_list", baseline=True)["arm"])

    def label(self, arm: str) -> str:
        return str(self.row("arm_list", arm=arm)["label"])

    def arm_with_scorer(self, scorer: str, guarded: bool = True) -> str:
        """The arm named after its scorer, else the first with that scorer (and paragraph guard, or without).

        Raises:
            NotRun: no arm of this run is like that.
        """
        rows = [row for row in self.rows("arm_list", scorer=scorer) if (row["guard"] is not None) == guarded]
        if not rows:
            guard = "a" if guarded else "no"
            raise NotRun(f"no arm of this run has a {scorer} scorer and {guard} paragraph guard")
        return str(next((row["arm"] for row in rows if row["arm"] == scorer), rows[0]["arm"]))

    def _why_absent(self, name: str, where: dict[str, Any]) -> str:
        steps = sorted({row["step"] for row in self.rows(name) if "step" in row})
        if "step" in where and where["step"] not in steps:
            return f"step {where['step']} was not evaluated (evaluated: {', '.join(map(str, self.steps()))})"
        return f"{name}.csv has no row for {_describe(where)}"


def _describe(where: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in where.items())
