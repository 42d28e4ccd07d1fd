"""The losses by name."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Sequence
from typing import Any

from stepcredit.losses.batch import Loss
from stepcredit.losses.policy_gradient import (
    DPPOWithKL,
    ImportanceSampling,
    MaskedImportanceSampling,
    PPOClip,
    Reinforce,
    TruncatedImportanceSampling,
)
from stepcredit.losses.score_centering import (
    SampledScoreCentering,
    SampledTruncatedScoreCentering,
    ScoreCentering,
    TruncatedScoreCentering,
)

LOSSES: dict[str, type[Loss]] = {
    loss.name: loss
    for loss in (
        Reinforce,
        ImportanceSampling,
        TruncatedImportanceSampling,
        MaskedImportanceSampling,
        PPOClip,
        DPPOWithKL,
        ScoreCentering,
        SampledScoreCentering,
        TruncatedScoreCentering,
        SampledTruncatedScoreCentering,
    )
}
"""Every loss of the family, in the order of SPEC section 6's table."""


def build_loss(name: str, **settings: Any) -> Loss:
    """The loss called `name` with its settings (fields of its class); those not given keep the published
    value.

    Raises:
        ValueError: no such loss, no such setting of it, or a value out of its range; the message names the
            nearest.
    """
    if name not in LOSSES:
        raise ValueError(f'"{name}" is not a known loss; known losses: {_listing(name, list(LOSSES))}')
    loss = LOSSES[name]
    known = [field.name for field in dataclasses.fields(loss)]  # type: ignore[arg-type]
    for setting in settings:
        if setting not in known:
            has = f"it has: {_listing(setting, known)}" if known else "it has none"
            raise ValueError(f'loss {name} has no setting "{setting}"; {has}')
    return loss(**settings)


def _listing(word: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return ", ".join(known) + (f' (did you mean "{near[0]}"?)' if near else "")
