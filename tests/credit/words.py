"""Rollouts of words, and a scorer that knows how good each word is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from piecewise import PROMPT, Piecewise

from stepcredit.scoring.scorer import LogLikelihoods, ScoringCost, ScoringRequest

CORRECT, INCORRECT = "3+5", "2"
RIGHT = (CORRECT + "</solution>", "3 + 5</solution>")  # the second is the reference answer of PUZZLE
GOOD = [
    "<reasoning>",
    "try",
    "\n\n",
    "good",
    "\n\n",
    "</reasoning>",
    "\n",
    "<solution>",
    CORRECT,
    "</solution>",
]
BAD = ["<reasoning>", "bad", "</reasoning>", "\n", "<solution>", INCORRECT, "</solution>"]


LEVEL = {"<reasoning>": 1.0, "try": 1.0, "good": 3.0, "bad": -9.0, "word": 2.0}
PROMPT_LEVEL = -2.0


class WordScorer:
    """`3+5` has the level of the last word before the template, and every other answer 0."""

    def __init__(self, tokens: Piecewise) -> None:
        self.tokens = tokens
        self.asked: list[tuple[str, str]] = []

    def score(self, requests: Sequence[ScoringRequest]) -> tuple[list[LogLikelihoods], ScoringCost]:
        scores = [self._score(request) for request in requests]
        return scores, ScoringCost(sum(map(len, requests)), scorings_unique=7, tokens_computed=99)

    def _score(self, request: ScoringRequest) -> LogLikelihoods:
        alone = self.tokens.decode(request.trunk) == PROMPT
        assert self.tokens.decode(request.template) == ("<solution>" if alone else "</reasoning>\n<solution>")
        result = np.zeros((len(request.boundaries), len(request.answers)))
        for row, boundary in enumerate(request.boundaries):
            level = PROMPT_LEVEL if alone else LEVEL[self.tokens.pieces(request.trunk[:boundary])[-1]]
            for column, answer in enumerate(map(self.tokens.decode, request.answers)):
                self.asked.append((self.tokens.decode(request.trunk[:boundary]), answer))
                result[row, column] = level if answer in RIGHT else 0.0
        return result
