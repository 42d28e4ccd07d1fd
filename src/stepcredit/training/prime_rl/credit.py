"""Our credit on prime-rl's groups: traces in, one advantage for each sampled token out.

The scheme is `stepcredit.credit.contrastive_potential`, unchanged; its scorer is a server: the frozen one, which our
stage starts, or prime-rl's own inference server, which holds the current policy (the moving scorer).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stepcredit.credit.contrastive_potential import ContrastivePotential
from stepcredit.modeling.tokenizer import TextCodec
from stepcredit.rollouts import Group
from stepcredit.scoring.http import http_scorer
from stepcredit.scoring.scorer import Scorer
from stepcredit.scoring.transport import HttpClient
from stepcredit.settings.arm import ShapingSettings
from stepcredit.training.prime_rl.traces import INFO_KEY, Trace, rollout_of
from stepcredit.training.rollout_columns import credit_columns

API_KEY = "STEPCREDIT_SCORER_KEY"
"""Environment variable with the key of the frozen scorer's server."""


class TraceCredit:
    """Assigns the credit of one group of traces at a time."""

    def __init__(self, codec: TextCodec, scorer: Scorer, settings: ShapingSettings) -> None:
        self._codec = codec
        self._scheme = ContrastivePotential(scorer, codec, settings)

    @classmethod
    def connect(
        cls, model: Path | str, scorer: Mapping[str, str], shaping: Mapping[str, Any], api_key: str | None
    ) -> TraceCredit:
        """From prime-rl's configuration: the tables `orchestrator.algo.scorer` and `.shaping`."""
        kind = scorer["kind"]
        if kind not in ("naive", "batched", "cached"):
            raise ValueError(f'prime-rl scores over HTTP: scorer kind "{kind}" is none of naive, batched, cached')
        guard = shaping.get("max_paragraph_len") or None
        settings = ShapingSettings.model_validate({**shaping, "max_paragraph_len": guard})
        client = HttpClient(scorer["url"], api_key=api_key)
        return cls(TextCodec.load(model), http_scorer(kind, client), settings)  # type: ignore[arg-type]

    def assign(self, traces: Sequence[Trace]) -> list[list[float]]:
        """The advantages of each trace's sampled tokens; what explains them goes into `trace.info`.

        Args:
            traces: of one puzzle; a group may be partial.

        Raises:
            ServerError: the scorer is gone or refused.
        """
        graded = [rollout_of(trace, self._codec) for trace in traces]
        group = Group(graded[0][0], [rollout for _, rollout in graded])
        (credit,), metrics = self._scheme.assign([group])
        for trace, rollout in zip(traces, credit.rollouts, strict=True):
            trace.info[INFO_KEY] = {**credit_columns(rollout, credit), "metrics": dict(metrics)}  # `collect` reads it
        return [rollout.advantages.tolist() for rollout in credit.rollouts]
