"""The credit scheme of an arm, by its configuration."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from stepcredit.config import ArmSettings
from stepcredit.credit.contrastive_potential import ContrastivePotential
from stepcredit.credit.group_advantage import GroupAdvantage
from stepcredit.credit.scheme import CreditScheme
from stepcredit.credit.scorers import ScorerSources, open_scorer
from stepcredit.credit.token_text import TokenText


@contextmanager
def open_credit(arm: ArmSettings, tokens: TokenText, sources: ScorerSources) -> Iterator[CreditScheme]:
    """The scheme that `arm` names, for the duration of the block: its scorer may run a server.

    Args:
        sources: what a scorer is made of.

    Raises:
        ServerError: the scorer's server did not start.
    """
    if arm.scorer is None or arm.shaping is None:
        yield GroupAdvantage(tokens)
        return
    with open_scorer(arm.scorer, sources) as scorer:
        yield ContrastivePotential(scorer, tokens, arm.shaping)
