"""Raw files of a run, read and checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from stepcredit.evaluation.statistics import Floats, pass_at_k
from stepcredit.provenance.errors import UserError

EVALUATION_COLUMNS = ("puzzle", "sample", "reward", "well_formed", "finished", "tokens")


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Read a Parquet file of the run.

    Raises:
        UserError: the file is not there, or lacks a column.
    """
    if not path.is_file():
        raise UserError(f"{path}: missing; the stage that writes it has not run (see `snakemake -n`)")
    frame = pd.read_parquet(path)
    absent = [column for column in columns or () if column not in frame.columns]
    if absent:
        raise UserError(f"{path}: lacks the column(s) {', '.join(absent)}; it has {', '.join(frame.columns)}")
    return frame


@dataclass(frozen=True)
class Evaluation:
    """Held-out samples of one checkpoint as (puzzles, samples) matrices, puzzles in order of their index.

    Attributes:
        puzzles: index of each puzzle.
        correct, well_formed, finished: 0 or 1.
        tokens: length of each completion.
    """

    puzzles: tuple[int, ...]
    correct: Floats
    well_formed: Floats
    finished: Floats
    tokens: Floats

    @property
    def samples(self) -> int:
        return int(self.correct.shape[1])

    def pass_at(self, k: int) -> Floats:
        """pass@k of each puzzle."""
        return pass_at_k(self.correct.sum(axis=1), self.samples, k)

    def cut(self, cap: int) -> Evaluation:
        """The same samples under a smaller token cap: a longer completion is not finished, and so not right."""
        fits = (self.tokens <= cap).astype(np.float64)
        return Evaluation(
            self.puzzles,
            self.correct * fits,
            self.well_formed * fits,
            self.finished * fits,
            np.minimum(self.tokens, cap),
        )

    def mixed(self) -> Floats:
        """1 for each puzzle with some right and some wrong samples."""
        right = self.correct.sum(axis=1)
        result: Floats = ((right > 0) & (right < self.samples)).astype(np.float64)
        return result


def read_evaluation(path: Path, samples: int) -> Evaluation:
    """Read and check one file of held-out samples.

    Raises:
        UserError: a file or column is missing, or a puzzle does not have exactly `samples` samples.
    """
    frame = read_parquet(path, EVALUATION_COLUMNS).sort_values(["puzzle", "sample"], kind="stable")
    counts = frame.groupby("puzzle")["sample"].nunique()
    if len(frame) != samples * len(counts) or not (counts == samples).all():
        raise UserError(f"{path}: expected {samples} different samples of each of its {len(counts)} puzzles")

    def matrix(column: str) -> Floats:
        return frame[column].to_numpy(dtype=np.float64).reshape(-1, samples)

    return Evaluation(
        puzzles=tuple(int(puzzle) for puzzle in counts.index),
        correct=(matrix("reward") > 0).astype(np.float64),
        well_formed=matrix("well_formed"),
        finished=matrix("finished"),
        tokens=matrix("tokens"),
    )


def read_evaluations(paths: Sequence[Path], samples: int) -> list[Evaluation]:
    """Read several files that must hold the same puzzles.

    Raises:
        UserError: the puzzles of two files differ, so that nothing can be compared pairwise.
    """
    evaluations = [read_evaluation(path, samples) for path in paths]
    for path, evaluation in zip(paths, evaluations, strict=True):
        if evaluation.puzzles != evaluations[0].puzzles:
            raise UserError(f"{path}: its puzzles differ from those of {paths[0]}")
    return evaluations
