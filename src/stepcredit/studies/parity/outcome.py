"""What a setting of the audit gives, whichever engine ran it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stepcredit.studies.parity.trainer import Scored


class EngineRefusedError(RuntimeError):
    """vLLM does not start with a setting's options on this platform."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """Log-probs of one setting by both sides.

    Attributes:
        scored: each token's by the weights that were in force when it was sampled.
        lag: mean steps by which the weights behind a token are older than the trainer's newest.
        note: what a reader must know.
        again: the trainer's log-probs computed once more, in other micro-batches; None where that is not asked.
    """

    scored: Scored
    lag: float = 0.0
    note: str = ""
    again: Callable[[], Scored] | None = None
