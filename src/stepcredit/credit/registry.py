"""The credit scheme of an arm, by its configuration."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from stepcredit.credit.contrastive_potential import ContrastivePotential
from stepcredit.credit.group_advantage import GroupAdvantage
from stepcredit.credit.own import own_scheme
from stepcredit.credit.prefix_value import PrefixValue
from stepcredit.credit.raw_reward import RawReward
from stepcredit.credit.reference_likelihood import ReferenceLikelihood
from stepcredit.credit.scheme import CreditScheme
from stepcredit.credit.scorers import ScorerSources, open_scorer
from stepcredit.credit.token_text import TokenText
from stepcredit.sampling.continuations import Continuations
from stepcredit.settings.arm import ArmSettings

SCORED = {"contrastive_potential": ContrastivePotential, "reference_likelihood": ReferenceLikelihood}


@contextmanager
def open_credit(
    arm: ArmSettings, tokens: TokenText, sources: ScorerSources, continuations: Continuations
) -> Iterator[CreditScheme]:
    """The scheme that `arm` names, for the duration of the block: its scorer may run a server.

    Args:
        sources: what a scorer is made of.
        continuations: what a prefix value samples with.

    Raises:
        ServerError: the scorer's server did not start.
    """
    if arm.scheme is not None:
        yield own_scheme(arm.scheme)(arm, tokens)
    elif arm.credit == "raw_reward":
        yield RawReward(tokens)
    elif arm.shaping is None:
        yield GroupAdvantage(tokens)
    elif arm.scorer is None:
        yield PrefixValue(continuations, tokens, arm.shaping)
    else:
        with open_scorer(arm.scorer, sources) as scorer:
            yield SCORED[arm.credit](scorer, tokens, arm.shaping)
