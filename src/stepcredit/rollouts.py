"""What the sampler returns and everything above passes around: rollouts and the groups they form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stepcredit.countdown.puzzle import Puzzle
from stepcredit.countdown.verifier import Verdict


@dataclass(frozen=True, eq=False)
class Candidates:
    """Tokens beside the sampled one at each position of a completion, with the sampler's log-probabilities.

    Attributes:
        token_ids: int64 [tokens, k].
        logprobs: float32 [tokens, k], after temperature (nats).
    """

    token_ids: npt.NDArray[np.int64]
    logprobs: npt.NDArray[np.float32]

    @property
    def nbytes(self) -> int:
        return self.token_ids.nbytes + self.logprobs.nbytes


@dataclass(frozen=True)
class Completion:
    """What a sampler returns for one request.

    Attributes:
        token_ids: the sampled tokens, the end-of-sequence token included when the completion finished.
        logprobs: the sampler's log-probability of each token, after temperature (nats), same length; empty where not
            asked for.
        finished: false when the token cap ended it.
        head: the k most likely tokens at each position, all different; None where not asked for.
        draws: K further tokens drawn from the same distributions, repeats kept; None where not asked for.
        lag: updates by which the weights it was sampled with were behind the newest, mean over its tokens.
    """

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finished: bool
    head: Candidates | None = None
    draws: Candidates | None = None
    lag: float = 0.0


@dataclass(frozen=True)
class Rollout:
    """One graded completion of a puzzle's prompt.

    Attributes:
        prompt_ids: tokens of the prompt.
        completion: what the sampler returned.
        text: the completion decoded, without special tokens.
        verdict: what the verifier says; a completion that hit the token cap submits nothing.
    """

    prompt_ids: tuple[int, ...]
    completion: Completion
    text: str
    verdict: Verdict

    @property
    def reward(self) -> float:
        return self.verdict.reward

    def __len__(self) -> int:
        return len(self.completion.token_ids)


@dataclass(frozen=True)
class Group:
    """The rollouts of one prompt."""

    puzzle: Puzzle
    rollouts: Sequence[Rollout]

    @property
    def rewards(self) -> list[float]:
        return [rollout.reward for rollout in self.rollouts]

    @property
    def is_mixed(self) -> bool:
        """Some rollouts are right and some are wrong: only then does a group carry a learning signal."""
        return 0 < sum(reward > 0 for reward in self.rewards) < len(self.rollouts)
