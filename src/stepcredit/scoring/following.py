"""A server that scores with a model in training: it is given the weights anew before each batch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from transformers import PreTrainedModel

from stepcredit.scoring.scorer import LogLikelihoods, Scorer, ScoringCost, ScoringRequest
from stepcredit.scoring.server import ScorerServer


class FollowingScorer:
    """A `Scorer` on a server whose weights follow those of a model of this process."""

    def __init__(self, scorer: Scorer, server: ScorerServer, model: PreTrainedModel, directory: Path) -> None:
        """
        Args:
            scorer: a client of `server`.
            directory: where the weights pass through; the server must see it under the same path.
        """
        self._scorer, self._server = scorer, server
        self._model, self._directory = model, directory

    def score(self, requests: Sequence[ScoringRequest]) -> tuple[list[LogLikelihoods], ScoringCost]:
        """See `Scorer.score`.

        Raises:
            ServerError: the server could not load the weights, or did not score.
        """
        self._model.save_pretrained(self._directory)
        self._server.update_weights(self._directory)
        return self._scorer.score(requests)
