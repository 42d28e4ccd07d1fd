"""The credit scheme of an arm, by its configuration."""

from __future__ import annotations

from transformers import PreTrainedModel

from stepcredit.config import ArmSettings
from stepcredit.credit.contrastive_potential import ContrastivePotential
from stepcredit.credit.group_advantage import GroupAdvantage
from stepcredit.credit.own import own_scheme
from stepcredit.credit.prefix_value import PrefixValue
from stepcredit.credit.raw_reward import RawReward
from stepcredit.credit.reference_likelihood import ReferenceLikelihood
from stepcredit.credit.scheme import CreditScheme
from stepcredit.credit.token_text import TokenText
from stepcredit.sampling.continuations import Continuations
from stepcredit.scoring.tree import TreeScorer

SCORED = {"contrastive_potential": ContrastivePotential, "reference_likelihood": ReferenceLikelihood}


def build_credit(
    arm: ArmSettings, tokens: TokenText, *, scorer: PreTrainedModel | None, continuations: Continuations
) -> CreditScheme:
    """The scheme that `arm` names.

    Args:
        scorer: what its scorer scores with; None where it has none.
        continuations: what a prefix value samples with.
    """
    if arm.scheme is not None:
        return own_scheme(arm.scheme)(arm, tokens)
    if arm.credit == "raw_reward":
        return RawReward(tokens)
    if arm.shaping is None:
        return GroupAdvantage(tokens)
    if scorer is None:
        return PrefixValue(continuations, tokens, arm.shaping)
    return SCORED[arm.credit](TreeScorer(scorer), tokens, arm.shaping)
