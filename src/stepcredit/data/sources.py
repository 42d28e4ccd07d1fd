"""Where demonstrations come from: generated here, the Hugging Face hub, or a file; one interface."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from stepcredit.countdown.demonstrations import demonstrate
from stepcredit.countdown.stepwise import demonstrate_steps
from stepcredit.data.dirt import clean_response, dirty_response
from stepcredit.data.query import query_text
from stepcredit.data.rows import RawRow, raw_row, read_rows
from stepcredit.data.space import enumerate_puzzles
from stepcredit.data.splits import assign_splits
from stepcredit.provenance.errors import UserError
from stepcredit.settings.data import DataSettings, HubSource

STYLES = {"attempts": demonstrate, "steps": demonstrate_steps}


class Source(Protocol):
    """Gives the raw rows of one origin."""

    def rows(self) -> Iterator[RawRow]:
        """Every row, in a fixed order.

        Raises:
            UserError: the origin cannot be read.
        """
        ...


def open_source(settings: DataSettings) -> Source:
    """The source that `data.source` names."""
    match settings.source:
        case "synthetic":
            return Synthetic(settings)
        case "hub":
            return Hub(settings.hub)
        case "file":
            assert settings.file.path is not None, "DataSettings refuses a file without a path"
            return File(Path(settings.file.path))


@dataclass(frozen=True)
class Synthetic:
    """Demonstrations of our solver, of SFT's puzzles only, drawn with replacement; a function of the seed.

    The splits are made before the rows, by the same function as later, so every row is SFT's. Of the
    `demonstrations` rows cleaning drops the wrong guesses and part of the dirt: about a quarter by default.
    """

    settings: DataSettings

    def rows(self) -> Iterator[RawRow]:
        synthetic = self.settings.synthetic
        splits = assign_splits(enumerate_puzzles(synthetic), self.settings.splits, self.settings.seed)
        rng = random.Random(f"demonstrations {self.settings.seed}")
        write = STYLES[synthetic.style]
        for _ in range(synthetic.demonstrations):
            demonstration = write(rng.choice(splits.demonstrations), synthetic.largest_intermediate, rng)
            is_dirty = rng.random() < synthetic.dirty_share
            puzzle = demonstration.puzzle
            yield RawRow(
                nums=puzzle.nums,
                target=puzzle.target,
                query=query_text(puzzle),
                response=dirty_response(demonstration, rng) if is_dirty else clean_response(demonstration),
            )


@dataclass(frozen=True)
class File:
    """A JSONL or Parquet file; see `data.rows.read_rows`."""

    path: Path

    def rows(self) -> Iterator[RawRow]:
        return read_rows(self.path)


@dataclass(frozen=True)
class Hub:
    """A data set of the Hugging Face hub, one column of prompts and one of responses."""

    settings: HubSource

    def rows(self) -> Iterator[RawRow]:
        import datasets

        name = self.settings.dataset
        try:
            table = datasets.load_dataset(name, split=self.settings.split)
        except Exception as error:  # the hub's clients raise errors of several libraries
            raise UserError(
                f'data.source is "hub", but {name} (split {self.settings.split}) cannot be loaded: {error}.'
                ' Where the hub cannot be reached, set data.source to "file" with data.file.path, or to'
                ' "synthetic"'
            ) from error
        columns = {"query": self.settings.query_column, "response": self.settings.response_column}
        for key, column in columns.items():
            if column not in table.column_names:
                raise UserError(f"data.hub.{key}_column is {column}, but {name} has {', '.join(table.column_names)}")
        for index, row in enumerate(table):
            taken = {key: row[column] for key, column in columns.items()}
            yield raw_row(taken, f"{name}: row {index + 1}")
