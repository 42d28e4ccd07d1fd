"""Losses on plain tensors, usable alone: build a loss by name, give it a TokenBatch, sum what it returns."""

from stepcredit.losses.batch import Loss, Need, TokenBatch, TokenLoss, required_fields
from stepcredit.losses.expectation import expected_update, on_policy_update
from stepcredit.losses.policy_gradient import (
    DPPOWithKL,
    ImportanceSampling,
    MaskedImportanceSampling,
    PPOClip,
    Reinforce,
    TruncatedImportanceSampling,
)
from stepcredit.losses.registry import LOSSES, build_loss
from stepcredit.losses.score_centering import (
    SampledScoreCentering,
    SampledTruncatedScoreCentering,
    ScoreCentering,
    TruncatedScoreCentering,
)

__all__ = [
    "LOSSES",
    "DPPOWithKL",
    "ImportanceSampling",
    "Loss",
    "MaskedImportanceSampling",
    "Need",
    "PPOClip",
    "Reinforce",
    "SampledScoreCentering",
    "SampledTruncatedScoreCentering",
    "ScoreCentering",
    "TokenBatch",
    "TokenLoss",
    "TruncatedImportanceSampling",
    "TruncatedScoreCentering",
    "build_loss",
    "expected_update",
    "on_policy_update",
    "required_fields",
]
