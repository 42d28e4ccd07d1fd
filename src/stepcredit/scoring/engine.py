"""The cached scorer without a server: on the `vllm.LLM` that a sampler in this process holds already.

Where the policy scores itself, the engine's prefix cache holds the rollouts: only template, answers and the
trailing blocks are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stepcredit.scoring.scorer import (
    LogLikelihoods,
    Scoring,
    ScoringCost,
    ScoringRequest,
    deduplicate,
)
from stepcredit.scoring.vllm_plugin.engine import install
from stepcredit.scoring.vllm_plugin.probe import WITHOUT_PLUGIN, check_configuration, judge_probe, probe_sequence
from stepcredit.scoring.vllm_plugin.span import longest_sequence, span_logprob, submission


class EngineScoringError(RuntimeError):
    """The engine returned no finite log-probability for every token of a span."""


class EngineScorer:
    """A `Scorer` on vLLM's offline engine. Whoever changes the engine's weights resets its prefix cache."""

    def __init__(self, llm: Any, *, use_cache: bool = True) -> None:
        """
        Args:
            llm: a `vllm.LLM`; its core runs in this process, or has loaded the plugin by its entry point.
            use_cache: whether to read the prefix cache up to the start of each span.

        Raises:
            UnsupportedVLLMError: the plugin does not fit this vLLM.
            ValueError: the engine's configuration does not allow right scores.
            RuntimeError: the engine core lacks the plugin.
        """
        install()
        configuration = llm.llm_engine.vllm_config
        check_configuration(configuration)
        self._llm = llm
        self._use_cache = use_cache
        self._v2_runner = bool(configuration.use_v2_model_runner)
        self._probe(configuration)

    def score(self, requests: Sequence[ScoringRequest]) -> tuple[list[LogLikelihoods], ScoringCost]:
        """See `Scorer.score`.

        Raises:
            EngineScoringError: a span's score is incomplete or not finite.
        """
        unique, positions = deduplicate(requests)
        values, cached, computed = self._run(unique)
        cost = ScoringCost(
            scorings=sum(map(len, requests)),
            scorings_unique=len(unique),
            tokens_computed=computed,
            tokens_cached=sum(cached),
        )
        scores = np.array(values, dtype=np.float64)
        return [scores[position] for position in positions], cost

    def _run(self, scorings: Sequence[Scoring]) -> tuple[list[float], list[int], int]:
        """Log-probability and cached tokens of each scoring, and the number of computed tokens of all."""
        if not scorings:
            return [], [], 0
        submissions = [
            submission(tokens, start, use_cache=self._use_cache, v2_runner=self._v2_runner)
            for tokens, start in scorings
        ]
        outputs = self._llm.generate(
            [{"prompt_token_ids": each.prompt} for each in submissions],
            [each.parameters for each in submissions],
            use_tqdm=False,
        )
        values = []
        for index, (output, each) in enumerate(zip(outputs, submissions, strict=True)):
            value = span_logprob(output, each.targets, v2_runner=self._v2_runner)
            if value is None:
                raise EngineScoringError(f"scoring {index}: log-probabilities of the span are missing")
            values.append(value)
        cached = [output.num_cached_tokens or 0 for output in outputs]
        return values, cached, sum(len(each.prompt) for each in submissions) - sum(cached)

    def _probe(self, configuration: Any) -> None:
        model, block_size = configuration.model_config, configuration.cache_config.block_size or 16
        longest = longest_sequence(model.max_model_len, v2_runner=self._v2_runner)
        tokens = probe_sequence(block_size, longest, model.get_vocab_size())
        if tokens is not None and self._use_cache:
            sequence = tuple(tokens)
            try:
                self._run([Scoring(sequence, 2)])
                _, early, _ = self._run([Scoring(sequence, 2)])
                _, late, _ = self._run([Scoring(sequence, block_size + 1)])
            except EngineScoringError as error:
                raise RuntimeError(f"{WITHOUT_PLUGIN}: {error}") from error
            judge_probe(early[0], late[0])
