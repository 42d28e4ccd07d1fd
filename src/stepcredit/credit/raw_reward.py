"""The reward itself as the advantage, +1 or 0, of every token: nothing is subtracted.

The least stable setting under mismatch: the drift is scaled by the mean reward. Source: SC, "Drift is the trainer
copying the sampler".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from stepcredit.credit.group_advantage import GroupAdvantage


class RawReward(GroupAdvantage):
    """As `GroupAdvantage`, without its mean; implements `CreditScheme`."""

    def _advantages(self, rewards: Sequence[float]) -> npt.NDArray[np.float64]:
        return np.asarray(rewards, dtype=np.float64)
