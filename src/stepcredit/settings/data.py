"""Where demonstrations and puzzles come from."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from stepcredit.settings.section import Positive, Section, Share


class SyntheticSource(Section):
    """Puzzles and demonstration traces that we generate, deliberately dirty so that cleaning has work."""

    numbers: Annotated[int, Field(ge=3, le=4)] = 3
    largest_number: Annotated[int, Field(ge=5, le=99)] = 15
    smallest_target: Positive = 10
    largest_target: Positive = 99
    largest_intermediate: Positive = 100
    demonstrations: Positive = 40_000
    dirty_share: Share = 0.1
    style: Literal["attempts", "steps"] = "attempts"
    """What a paragraph of a demonstration is: a whole attempt, or one operation with the numbers that remain."""

    @model_validator(mode="after")
    def _ordered(self) -> SyntheticSource:
        if not self.smallest_target <= self.largest_target <= self.largest_intermediate:
            raise ValueError("smallest_target <= largest_target <= largest_intermediate must hold")
        if self.largest_number > self.largest_intermediate:
            raise ValueError("largest_number must not exceed largest_intermediate, the tokenizer's largest number")
        return self


class HubSource(Section):
    """A data set of the Hugging Face hub with one column of prompts and one of responses."""

    dataset: str = "asingh15/countdown_tasks_3to4-dpo"
    split: str = "train"
    query_column: str = "query"
    response_column: str = "response_ws"


class FileSource(Section):
    """A JSONL or Parquet file with the columns `query`, `response_ws` or `nums`, `target`, `response`."""

    path: str | None = None


class SplitSettings(Section):
    """How many puzzles are kept for choosing (validation) and for reporting (held-out)."""

    validation: Positive = 256
    heldout: Positive = 512
    rl_share: Share = 0.4
    """Share of the remaining (train) puzzles that SFT does not see and RL draws from; 0: both use all of them."""


class DataSettings(Section):
    source: Literal["synthetic", "hub", "file"] = "synthetic"
    synthetic: SyntheticSource = SyntheticSource()
    hub: HubSource = HubSource()
    file: FileSource = FileSource()
    splits: SplitSettings = SplitSettings()
    seed: int = 0

    @model_validator(mode="after")
    def _file_has_path(self) -> DataSettings:
        if self.source == "file" and not self.file.path:
            raise ValueError('source is "file" but file.path is not set')
        return self
