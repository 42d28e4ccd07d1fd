"""The credit scheme of an arm, by its configuration."""

from __future__ import annotations

from collections.abc import Callable

from transformers import PreTrainedModel

from stepcredit.config import ArmSettings
from stepcredit.credit.contrastive_potential import ContrastivePotential
from stepcredit.credit.group_advantage import GroupAdvantage
from stepcredit.credit.own import own_scheme
from stepcredit.credit.scheme import CreditScheme
from stepcredit.credit.token_text import TokenText
from stepcredit.scoring.tree import TreeScorer


def build_credit(
    arm: ArmSettings, tokens: TokenText, *, policy: PreTrainedModel, frozen: Callable[[], PreTrainedModel]
) -> CreditScheme:
    """The scheme that `arm` names.

    Args:
        policy: the model that is trained: what a moving scorer scores with.
        frozen: loads the SFT checkpoint, for a frozen scorer.
    """
    if arm.scheme is not None:
        return own_scheme(arm.scheme)(arm, tokens)
    if arm.scorer is None or arm.shaping is None:
        return GroupAdvantage(tokens)
    model = policy if arm.scorer.model == "moving" else frozen()
    return ContrastivePotential(TreeScorer(model), tokens, arm.shaping)
