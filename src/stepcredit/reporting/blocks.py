"""What a section of the report is made of. All text is plain: the templates escape it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from markupsafe import Markup

from stepcredit.evaluation.statistics import Interval
from stepcredit.reporting.numbers import bounds, number


@dataclass(frozen=True)
class Prose:
    """A paragraph."""

    text: str
    kind: Literal["prose"] = "prose"


@dataclass(frozen=True)
class Note:
    """A caveat that belongs beside what it limits."""

    text: str
    kind: Literal["note"] = "note"


@dataclass(frozen=True)
class Absent:
    """Something that was not run: in grey, with the command that runs it."""

    text: str
    command: str
    kind: Literal["absent"] = "absent"


@dataclass(frozen=True)
class Panel:
    """One inlined figure with its caption, and the address of its file relative to the report."""

    svg: Markup
    caption: str
    file: str = ""


@dataclass(frozen=True)
class Figures:
    """One wide figure, or several that stand side by side where there is room."""

    panels: Sequence[Panel]
    caption: str = ""
    kind: Literal["figures"] = "figures"


@dataclass(frozen=True)
class Cell:
    """A cell: its text, what stands small beside it (an interval), and whether it is a number."""

    text: str
    beside: str = ""
    numeric: bool = False

    @classmethod
    def interval(cls, interval: Interval, unit: str) -> Cell:
        return cls(number(interval.mean, unit, suffix=False), bounds(interval, unit), numeric=True)

    @classmethod
    def value(cls, value: float | None, unit: str = "number") -> Cell:
        return cls(number(value, unit, suffix=False), numeric=True)


@dataclass(frozen=True)
class Table:
    """A table with its caption, its file and the command that makes it.

    Attributes:
        csv: address of the CSV file relative to the report, empty if there is none.
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    csv: str = ""
    command: str = ""
    kind: Literal["table"] = "table"

    @property
    def numeric(self) -> list[bool]:
        """Which columns hold numbers and are aligned right."""
        return [all(row[index].numeric for row in self.rows) for index in range(len(self.header))]

    @property
    def wide(self) -> list[bool]:
        """Which columns have an interval beside the mean, aligned by itself."""
        return [any(row[index].beside for row in self.rows) for index in range(len(self.header))]


@dataclass(frozen=True)
class Facts:
    """Names and what they stand for."""

    items: Sequence[tuple[str, str]]
    kind: Literal["facts"] = "facts"


@dataclass(frozen=True)
class Chain:
    """The stages of the experiment in order, each with a word on it; a stage may hold parallel ones."""

    stages: Sequence[tuple[str, str]]
    kind: Literal["chain"] = "chain"


@dataclass(frozen=True)
class Code:
    """Text shown as it is, with a name."""

    text: str
    kind: Literal["code"] = "code"


@dataclass(frozen=True)
class Html:
    """Markup that a section has escaped itself."""

    markup: Markup
    kind: Literal["html"] = "html"


@dataclass(frozen=True)
class Details:
    """Blocks that fold away; `bulk`: they stay folded in print."""

    summary: str
    blocks: Sequence[Block]
    bulk: bool = False
    kind: Literal["details"] = "details"


@dataclass(frozen=True)
class Heading:
    """A heading inside a section."""

    text: str
    kind: Literal["heading"] = "heading"


@dataclass(frozen=True)
class ClaimRow:
    """A claim and its verdict."""

    number: int
    verdict: str
    text: str
    where: str
    published: str
    ours: str
    reason: str
    test: str
    command: str


@dataclass(frozen=True)
class Claims:
    """Claims, one row each."""

    rows: Sequence[ClaimRow]
    kind: Literal["claims"] = "claims"


Block = Prose | Note | Absent | Figures | Table | Facts | Chain | Code | Html | Details | Heading | Claims


@dataclass(frozen=True)
class Section:
    """A section of the report.

    Attributes:
        key: its anchor.
        question: what a reader comes with.
        answer: one computed sentence with its number and interval; empty where nothing was run.
    """

    key: str
    title: str
    question: str
    answer: str
    blocks: Sequence[Block] = field(default_factory=tuple)
