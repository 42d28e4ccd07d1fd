"""Every kind of scorer that an arm may name, frozen and moving, against plain forward passes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from transformers import PreTrainedModel

from stepcredit.credit.scorers import ScorerSources, open_scorer, server_settings
from stepcredit.modeling.model import build_model, load_model, save_model
from stepcredit.modeling.tokenizer import TextCodec, build_tokenizer
from stepcredit.sampling.vllm_engine import VLLMSampler
from stepcredit.scoring.scorer import ScoringRequest
from stepcredit.scoring.server import ScorerServer
from stepcredit.settings.arm import ScorerSettings
from stepcredit.settings.model import ModelSettings
from stepcredit.settings.sampler import SamplerSettings
from stepcredit.studies.scoring.plain import plain_scores

SAMPLER = SamplerSettings(max_model_len=64, max_concurrent=16, kv_cache_mib=16)
SHAPE = ModelSettings(
    hidden_size=32, layers=2, intermediate_size=64, attention_heads=2, key_value_heads=1, head_dim=32, max_positions=64
)
REQUESTS = [
    ScoringRequest(tuple(range(5, 5 + length)), (2, 9, length), (7, 8), ((20, 21, 9), (20, 22, 9), (23, 9)))
    for length in (36, 41)
]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    directory = tmp_path_factory.mktemp("sft") / "model"
    codec = TextCodec(build_tokenizer(60))
    save_model(_sharp(build_model(SHAPE, codec, seed=0), 3.0), codec, directory)
    return directory


@pytest.fixture(scope="module")
def sources(checkpoint: Path) -> Iterator[ScorerSources]:
    """A policy that has moved away from the checkpoint, in the sampler's engine too; and a server of the checkpoint."""
    policy = _sharp(load_model(checkpoint), 1.2)
    sampler = VLLMSampler(checkpoint, SAMPLER, eos_id=2)
    sampler.push_weights(policy)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        with ScorerServer(checkpoint, server_settings(SAMPLER)) as server:
            yield ScorerSources(policy, checkpoint, sampler.engine, SAMPLER, server)


def _sharp(model: PreTrainedModel, factor: float) -> PreTrainedModel:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= factor
    return model


def _worst(scores: Any, wanted: Any) -> float:
    return max(float(np.abs(one - other).max()) for one, other in zip(scores, wanted, strict=True))


@pytest.mark.parametrize("kind", ["tree", "engine", "cached", "batched", "naive"])
def test_a_moving_scorer_of_any_kind_scores_with_the_policy_as_it_is_now(sources: ScorerSources, kind: Any) -> None:
    before = plain_scores(sources.policy, REQUESTS)
    with open_scorer(ScorerSettings(model="moving", kind=kind), sources) as scorer:
        assert _worst(scorer.score(REQUESTS)[0], before) < 1e-4
        if kind != "engine":  # whose weights are the sampler's to push
            with torch.no_grad():
                sources.policy.base_model.norm.weight *= 1.1
            after = plain_scores(sources.policy, REQUESTS)
            assert _worst(before, after) > 1e-2
            assert _worst(scorer.score(REQUESTS)[0], after) < 1e-4
            with torch.no_grad():
                sources.policy.base_model.norm.weight /= 1.1


@pytest.mark.parametrize("kind", ["tree", "cached", "batched", "naive"])
def test_a_frozen_scorer_of_any_kind_scores_with_the_checkpoint(sources: ScorerSources, kind: Any) -> None:
    """Also where the server scored with the policy before."""
    wanted = plain_scores(load_model(sources.checkpoint), REQUESTS)
    assert _worst(wanted, plain_scores(sources.policy, REQUESTS)) > 1e-2
    with open_scorer(ScorerSettings(model="frozen", kind=kind), sources) as scorer:
        assert _worst(scorer.score(REQUESTS)[0], wanted) < 1e-4


def test_a_server_that_was_started_for_an_arm_ends_with_it(
    sources: ScorerSources, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    alone = ScorerSources(sources.policy, sources.checkpoint, sources.engine, SAMPLER)
    before = set(psutil.Process().children(recursive=True))
    started = set()

    def interrupted() -> None:
        with open_scorer(ScorerSettings(model="frozen", kind="cached"), alone) as scorer:
            scorer.score(REQUESTS)
            started.update(set(psutil.Process().children(recursive=True)) - before)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert started
    _, alive = psutil.wait_procs(list(started), timeout=15)
    assert not alive


def test_a_frozen_scorer_cannot_be_the_samplers_engine() -> None:
    with pytest.raises(ValueError, match="which holds the policy"):
        ScorerSettings(model="frozen", kind="engine")
