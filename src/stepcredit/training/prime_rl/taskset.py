"""Countdown as a taskset of verifiers, graded by our verifier. Runs in prime-rl's environment."""

from __future__ import annotations

import random
from pathlib import Path

import verifiers.v1 as vf

from stepcredit.countdown.prompt import prompt_text
from stepcredit.countdown.puzzle import Puzzle
from stepcredit.countdown.verifier import TRUNCATED, grade
from stepcredit.tables import read_puzzles


class CountdownData(vf.TaskData):
    """A puzzle, with its prompt in the field `prompt`."""

    numbers: list[int]
    target: int


class CountdownTask(vf.Task[CountdownData]):
    """One turn, then the verdict."""

    @vf.stop
    async def single_turn(self, trace: vf.Trace) -> bool:
        return bool(trace.num_turns >= 1)

    @vf.reward(weight=1.0)
    async def correct(self, trace: vf.Trace) -> float:
        puzzle = Puzzle(tuple(self.data.numbers), self.data.target)
        verdict = TRUNCATED if trace.is_truncated else grade(trace.last_reply or "", puzzle)
        trace.info["answer"] = verdict.answer
        return verdict.reward


class CountdownConfig(vf.TasksetConfig):
    """`path`: Parquet with the columns `nums` and `target`; `seed`: of their order."""

    path: Path = Path("rl.parquet")
    seed: int = 0


class CountdownTaskset(vf.Taskset[CountdownTask, CountdownConfig]):
    """The puzzles of a file, in an order that depends on the seed alone."""

    def load(self) -> list[CountdownTask]:
        puzzles = read_puzzles(self.config.path)
        random.Random(self.config.seed).shuffle(puzzles)
        return [
            CountdownTask(
                CountdownData(idx=index, prompt=prompt_text(puzzle), numbers=list(puzzle.nums), target=puzzle.target),
                self.config.task,
            )
            for index, puzzle in enumerate(puzzles)
        ]
