"""The sampler: one vLLM engine in this process.

The settings below are the ones under which vLLM tells the truth to an RL trainer (PARITY, "V1 backend fixes"):
processed log-probs, a prefix cache that is reset at each weight update, prefills in one piece (a seeded request whose
prefill is chunked kills the engine on a CPU).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from transformers import PreTrainedModel

from stepcredit.rollouts import Candidates, Completion
from stepcredit.sampling.sampler import SAMPLED, Recording
from stepcredit.scoring.vllm_plugin.weights import redispatch_tied_head
from stepcredit.settings.sampler import SamplerSettings
from stepcredit.vllm_process import import_vllm


class EngineError(RuntimeError):
    """The engine did something that would make its samples wrong."""


class VLLMSampler:
    """A `Sampler` on vLLM's offline engine."""

    def __init__(
        self,
        model_directory: Path | str,
        settings: SamplerSettings,
        *,
        eos_id: int,
        max_concurrent: int | None = None,
    ) -> None:
        """Start the engine (seconds) on a Hugging Face directory.

        Args:
            model_directory: the first weights.
            settings: engine settings.
            eos_id: the token that ends a completion.
            max_concurrent: sequences decoded together; the settings' value where None.
        """
        import_vllm()
        from vllm import LLM

        from stepcredit.sampling.draws import DrawTokens

        concurrent = max_concurrent or settings.max_concurrent
        self._eos_id = eos_id
        self._reset_cache = settings.reset_cache
        self._engine: Any = LLM(
            model=str(model_directory),
            load_format="safetensors",
            dtype=settings.dtype,
            max_model_len=settings.max_model_len,
            max_num_seqs=concurrent,
            max_num_batched_tokens=max(settings.max_model_len, 16 * concurrent),
            enable_chunked_prefill=False,
            enable_prefix_caching=True,
            block_size=settings.block_size,
            kv_cache_dtype=settings.kv_cache_dtype,
            max_logprobs=-1,
            logits_processors=[DrawTokens],
            logprobs_mode=settings.logprobs_mode,
            enforce_eager=True,
            skip_tokenizer_init=True,
            disable_log_stats=True,
            seed=0,
            **_memory_settings(settings),
        )
        self._vocabulary = int(self._engine.model_config.get_vocab_size())

    @property
    def engine(self) -> Any:
        """The `vllm.LLM`, for those who score with the cache it has filled."""
        return self._engine

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        seeds: Sequence[int],
        temperature: float,
        max_new_tokens: int,
        recording: Recording = SAMPLED,
    ) -> list[Completion]:
        """See `Sampler.generate`.

        Raises:
            EngineError: a request ended without saying why, or without log-probabilities.
        """
        from vllm import SamplingParams

        from stepcredit.sampling.draws import DrawLog

        log = DrawLog() if recording.draws else None
        parameters = [
            SamplingParams(
                temperature=temperature,
                max_tokens=max_new_tokens,
                seed=seed,
                stop_token_ids=[self._eos_id],
                logprobs=min(recording.head, self._vocabulary) if recording.logprobs else None,
                flat_logprobs=True,
                detokenize=False,
                extra_args=log.request(index, seed, recording.draws, max_new_tokens) if log else None,
            )
            for index, seed in enumerate(seeds)
        ]
        requests = [{"prompt_token_ids": list(prompt)} for prompt in prompts]
        outputs = self._engine.generate(requests, parameters, use_tqdm=False)
        drawn = log.take(len(requests)) if log else itertools.repeat(None)
        return [
            self._completion(output.outputs[0], recording, draws) for output, draws in zip(outputs, drawn, strict=False)
        ]

    def push_weights(self, model: PreTrainedModel) -> None:
        """See `Sampler.push_weights`.

        Raises:
            EngineError: the prefix cache could not be reset (a request is still running).
        """
        weights = [(name, parameter.detach()) for name, parameter in model.named_parameters()]
        self._engine.collective_rpc(
            "reload_weights", kwargs={"weights_iterator": iter(weights), "is_checkpoint_format": True}
        )
        self._engine.apply_model(redispatch_tied_head)
        if self._reset_cache and not self._engine.reset_prefix_cache():
            raise EngineError("vLLM did not reset its prefix cache after a weight update")

    def _completion(self, output: Any, recording: Recording, draws: Candidates | None) -> Completion:
        tokens = tuple(output.token_ids)
        if output.finish_reason not in ("stop", "length"):
            raise EngineError(f"vLLM ended a request with finish_reason {output.finish_reason!r}")
        if draws is not None and len(draws.token_ids) != len(tokens):
            raise EngineError(f"{len(draws.token_ids)} positions have draws, of {len(tokens)} tokens")
        return Completion(
            token_ids=tokens,
            logprobs=_logprobs(output.logprobs, len(tokens)) if recording.logprobs else (),
            finished=tokens[-1] == self._eos_id,
            head=_head(output.logprobs, len(tokens)) if recording.head else None,
            draws=draws,
        )


def _logprobs(flat: Any, tokens: int) -> tuple[float, ...]:
    """Those of the sampled tokens, each of which stands first at its position."""
    starts = flat.start_indices
    if len(starts) != tokens:
        raise EngineError(f"vLLM returned {len(starts)} log-probs for {tokens} tokens")
    return tuple(flat.logprobs[start] for start in starts)


def _head(flat: Any, tokens: int) -> Candidates:
    """The top-k of each position: what follows the sampled token, which may stand there again."""
    ids = np.asarray(flat.token_ids, dtype=np.int64).reshape(tokens, -1)
    logprobs = np.asarray(flat.logprobs, dtype=np.float32).reshape(tokens, -1)
    return Candidates(ids[:, 1:], logprobs[:, 1:])


def _memory_settings(settings: SamplerSettings) -> dict[str, Any]:
    import torch

    if torch.cuda.is_available():
        return {"gpu_memory_utilization": settings.gpu_memory_utilization}
    return {"kv_cache_memory_bytes": settings.kv_cache_mib * 2**20}
