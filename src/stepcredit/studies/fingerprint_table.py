"""The fingerprint of every loss on many random models, as rows for a table and a figure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stepcredit.studies.fingerprint import closest, hidden_step, known_losses, one_token_gradients, predictions
from stepcredit.studies.probe import probe_model

MODELS = 20
SHOWN = ("reinforce", "sc", "sc_sampled")
"""Losses whose logit gradient at one token is kept for the figure: SC's figures 3 and 5."""


def fingerprint_rows(models: int = MODELS) -> Iterator[dict[str, Any]]:
    """One row a (model, loss): what it was named, the distance to that name and to the next one."""
    losses = known_losses()
    for seed in range(models):
        model = probe_model(seed)
        predicted = predictions(model, losses)
        for name, loss in losses.items():
            found = closest(hidden_step(loss), model, predicted)
            yield {
                "loss": name,
                "label": loss.label,
                "model": seed,
                "named": found.named,
                "distance": found.distance,
                "next_distance": min(far for other, far in found.distances.items() if other != found.nearest),
            }


def gradient_rows() -> Iterator[dict[str, Any]]:
    """One row a (loss, token): how one step moves each logit at the same probe token."""
    for found in one_token_gradients(SHOWN):
        touched = set(found.touched)
        for token, value in enumerate(found.gradient.tolist()):
            role = "sampled" if token == found.token else "drawn" if token in found.draws else "other"
            yield {
                "loss": found.loss,
                "token": token,
                "role": role,
                "draws": found.draws.count(token),
                "gradient": value,
                "moved": token in touched,
            }
