"""The scorer of an arm, by its configuration; a server that it needs runs as long as it is in use."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from stepcredit.modeling.model import load_model
from stepcredit.scoring.engine import EngineScorer
from stepcredit.scoring.following import FollowingScorer
from stepcredit.scoring.http import http_scorer
from stepcredit.scoring.scorer import Scorer
from stepcredit.scoring.server import ScorerServer, ServerSettings
from stepcredit.scoring.tree import TreeScorer
from stepcredit.settings.arm import ScorerSettings
from stepcredit.settings.sampler import SamplerSettings

_BATCHED_TOKENS = 4096
"""Tokens in one forward pass of a server: prompts alone, and short ones."""


@dataclass(frozen=True)
class ScorerSources:
    """What a scorer may be made of.

    Attributes:
        policy: the model that is trained: what a moving scorer scores with.
        checkpoint: directory of the SFT checkpoint: what a frozen scorer scores with.
        engine: the sampler's `vllm.LLM`, which holds the policy's weights.
        sampler: its settings, which a server shares.
        server: one that runs already, with any weights of this model; None: one is started where needed.
        average: the moving average of the policy's weights, where there is one.
    """

    policy: PreTrainedModel
    checkpoint: Path
    engine: Any
    sampler: SamplerSettings
    server: ScorerServer | None = None
    average: PreTrainedModel | None = None

    def model(self, settings: ScorerSettings) -> PreTrainedModel | None:
        """The model of this process that scores; None: the SFT checkpoint, which has to be loaded."""
        return {"moving": self.policy, "average": self.average, "frozen": None}[settings.model]


@contextmanager
def open_scorer(settings: ScorerSettings, sources: ScorerSources) -> Iterator[Scorer]:
    """The scorer that `settings` names, for the duration of the block.

    Raises:
        ServerError: a server did not start.
    """
    model = sources.model(settings)
    if settings.kind == "engine":
        yield EngineScorer(sources.engine)
    elif settings.kind == "tree":
        yield TreeScorer(model or _frozen(sources))
    else:
        with _server(sources) as server, tempfile.TemporaryDirectory(prefix="scorer-weights-") as directory:
            scorer = http_scorer(settings.kind, server.client())
            yield FollowingScorer(scorer, server, model, Path(directory)) if model else scorer


def server_settings(sampler: SamplerSettings) -> ServerSettings:
    """A server that scores what this sampler samples."""
    return ServerSettings(
        dtype=sampler.dtype,
        max_model_len=sampler.max_model_len,
        max_concurrent=sampler.max_concurrent,
        max_batched_tokens=max(_BATCHED_TOKENS, sampler.max_model_len),
        block_size=sampler.block_size,
        kv_cache_mib=None if torch.cuda.is_available() else sampler.kv_cache_mib,
    )


def _frozen(sources: ScorerSources) -> PreTrainedModel:
    return load_model(sources.checkpoint, str(sources.policy.device)).requires_grad_(False)


@contextmanager
def _server(sources: ScorerSources) -> Iterator[ScorerServer]:
    """A server with the SFT checkpoint's weights."""
    if sources.server is not None:
        sources.server.update_weights(sources.checkpoint)
        yield sources.server
    else:
        with ScorerServer(sources.checkpoint, server_settings(sources.sampler)) as server:
            yield server
