"""What the scorers are compared on: the scoring requests of the first steps of a run, from its recorded rollouts."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from stepcredit.countdown.prompt import prompt_text
from stepcredit.countdown.puzzle import Puzzle
from stepcredit.countdown.verifier import TRUNCATED, grade
from stepcredit.credit.contrastive_potential import ContrastivePotential
from stepcredit.modeling.tokenizer import TextCodec
from stepcredit.rollouts import Completion, Group, Rollout
from stepcredit.scoring.scorer import LogLikelihoods, ScoringCost, ScoringRequest, Tokens
from stepcredit.settings.arm import ShapingSettings

_COLUMNS = ["step", "group", "nums", "target", "completion", "finished"]


def recorded_requests(
    rollouts: Path, codec: TextCodec, shaping: ShapingSettings, scorings: int
) -> list[ScoringRequest]:
    """What shaping asks of a scorer for the rollouts of `rollouts.parquet`, step by step, up to about `scorings`.

    Whole rollouts, the first one always; none where no group of the file is mixed.
    """
    rows = pq.read_table(rollouts, columns=_COLUMNS).to_pylist()
    taken: list[ScoringRequest] = []
    size = 0
    for _, step_rows in itertools.groupby(rows, key=lambda row: row["step"]):
        for request in _requests(_groups(list(step_rows), codec), codec, shaping):
            if taken and size + len(request) > scorings:
                return taken
            taken.append(request)
            size += len(request)
    return taken


def long_request(requests: Sequence[ScoringRequest], trunk: int, scorings: int) -> list[ScoringRequest]:
    """One request with a trunk of about `trunk` tokens: recorded trunks one after the other, with their boundaries.

    Its bank is the first request's, cut so that there are about `scorings` scorings, but not below two answers: a
    contrast has a right and a wrong one. Empty where `requests` is.
    """
    if not requests:
        return []
    tokens: Tokens = ()
    boundaries: list[int] = []
    for request in itertools.cycle(requests):
        boundaries += [len(tokens) + boundary for boundary in request.boundaries]
        tokens += request.trunk
        if len(tokens) >= trunk:
            break
    kept = tuple(boundary for boundary in boundaries if boundary <= trunk) or (min(trunk, len(tokens)),)
    answers = requests[0].answers[: max(2, scorings // len(kept))]
    return [ScoringRequest(tokens[:trunk], kept, requests[0].template, answers)]


class _Recorder:
    """A scorer that keeps what it is asked."""

    def __init__(self) -> None:
        self.requests: list[ScoringRequest] = []

    def score(self, requests: Sequence[ScoringRequest]) -> tuple[list[LogLikelihoods], ScoringCost]:
        """See `Scorer.score`; every score is 0."""
        self.requests.extend(requests)
        return [np.zeros((len(request.boundaries), len(request.answers))) for request in requests], ScoringCost()


def _requests(groups: Sequence[Group], codec: TextCodec, shaping: ShapingSettings) -> list[ScoringRequest]:
    recorder = _Recorder()
    ContrastivePotential(recorder, codec, shaping).assign(groups)
    return recorder.requests


def _groups(rows: Sequence[dict[str, Any]], codec: TextCodec) -> list[Group]:
    """The groups of one step; completions are tokenized anew, as the file holds their text."""
    return [_group(list(group_rows), codec) for _, group_rows in itertools.groupby(rows, key=lambda row: row["group"])]


def _group(rows: Sequence[dict[str, Any]], codec: TextCodec) -> Group:
    puzzle = Puzzle(tuple(rows[0]["nums"]), rows[0]["target"])
    prompt = tuple(codec.encode_prompt(prompt_text(puzzle)))
    return Group(puzzle, [_rollout(row, puzzle, prompt, codec) for row in rows])


def _rollout(row: dict[str, Any], puzzle: Puzzle, prompt: Tokens, codec: TextCodec) -> Rollout:
    text, finished = row["completion"], row["finished"]
    tokens = (*codec.encode(text), *([codec.eos_id] if finished else []))
    completion = Completion(token_ids=tokens, logprobs=(0.0,) * len(tokens), finished=finished)
    return Rollout(prompt, completion, text, grade(text, puzzle) if finished else TRUNCATED)
