"""The settings that vLLM's offline engine can show: one engine for all that share its options."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from stepcredit.sampling.vllm_engine import EngineError
from stepcredit.scoring.vllm_plugin.weights import redispatch_tied_head
from stepcredit.studies.parity.outcome import EngineRefusedError, Outcome
from stepcredit.studies.parity.settings import EngineOptions, Procedure, Sampling, Setting, Update
from stepcredit.studies.parity.trainer import ROWS, Sampled, Scored, Trainer
from stepcredit.studies.parity.workload import BLOCK, LONGEST, SLOW_SHARE, Workload
from stepcredit.vllm_process import import_vllm

_CACHE_BYTES = 128 * 2**20
_CONCURRENT = 128
GPU_SHARE = 0.3
"""Of its memory, for one engine: two run at a time."""


class OfflineEngines:
    """Runs settings on engines in this process; consecutive settings with the same options share one."""

    def __init__(self, directory: Path, updated: Path, workload: Workload, device: str) -> None:
        """
        Args:
            directory: the checkpoint that is audited.
            updated: the checkpoint that a weight update brings.
        """
        self._directory = directory
        self._work = workload
        self._old = Trainer(directory, device)
        self._new = Trainer(updated, device)
        self._options: EngineOptions | None = None
        self._engine: Any = None
        self._procedures: dict[Procedure, Callable[[Setting], Outcome]] = {
            "plain": self._plain,
            "alone": self._alone,
            "reordered": self._reordered,
            "cached": self._cached,
            "update": self._update,
        }

    def run(self, setting: Setting) -> Outcome:
        """Sample and score one setting.

        Raises:
            EngineRefusedError: vLLM does not start with its options; whatever else it raises is passed on.
        """
        self._use(setting.engine)
        outcome = self._procedures[setting.procedure](setting)
        forced = self._forced(setting.engine)
        return replace(outcome, note="; ".join(filter(None, (outcome.note, forced))))

    # -- engines ------------------------------------------------------------------------------------------------------

    def _use(self, options: EngineOptions) -> None:
        if options == self._options:
            return
        self._engine, self._options = None, None
        gc.collect()
        import_vllm()
        from vllm import LLM

        arguments = engine_arguments(self._directory, options)
        try:
            self._engine = LLM(**arguments)
        except (ValueError, NotImplementedError) as error:
            raise EngineRefusedError(str(error)) from error
        self._options = options

    def _forced(self, options: EngineOptions) -> str:
        """What the platform made of the options against what was asked."""
        scheduler = self._engine.llm_engine.vllm_config.scheduler_config
        if options.async_scheduling is None or bool(scheduler.async_scheduling) == options.async_scheduling:
            return ""
        return f"forced by the platform: async scheduling is {'on' if scheduler.async_scheduling else 'off'}"

    def _push(self, trainer: Trainer, update: Update) -> None:
        """The weights of a float32 trainer into the engine, as `VLLMSampler.push_weights` does it, or not quite."""
        weights = [(name, parameter.detach()) for name, parameter in trainer.model().named_parameters()]
        self._engine.collective_rpc(
            "reload_weights", kwargs={"weights_iterator": iter(weights), "is_checkpoint_format": True}
        )
        if update.redispatch:
            self._engine.apply_model(redispatch_tied_head)
        if update.reset and not self._engine.reset_prefix_cache():
            raise EngineError("vLLM did not reset its prefix cache after a weight update")

    # -- procedures ---------------------------------------------------------------------------------------------------

    def _plain(self, setting: Setting) -> Outcome:
        return self._compared(setting, self._sample(self._work.batch(), setting.sampling))

    def _alone(self, setting: Setting) -> Outcome:
        batch = self._work.batch(slow=True)
        seeds = self._work.seeds(len(batch))
        samples = [
            sample
            for prompt, seed in zip(batch, seeds, strict=True)
            for sample in self._sample([prompt], setting.sampling, seeds=[seed])
        ]
        together = self._sample(batch, setting.sampling)
        return self._compared(setting, samples, _same_tokens(samples, together, "in one batch"))

    def _reordered(self, setting: Setting) -> Outcome:
        batch = self._work.batch()
        usual = self._sample(batch, setting.sampling)
        backwards = self._sample(batch[::-1], setting.sampling, seeds=self._work.seeds(len(batch))[::-1])[::-1]
        return self._compared(setting, backwards, _same_tokens(backwards, usual, "in the usual order"))

    def _cached(self, setting: Setting) -> Outcome:
        samples, hits = self._sample_long(setting)
        return self._compared(setting, samples, hits)

    def _update(self, setting: Setting) -> Outcome:
        """Fill the cache under the old weights, push the new ones, sample; the old ones come back at the end."""
        self._push(self._old, Update())
        self._warm()
        try:
            self._push(self._new, setting.update)
            samples, hits = self._sample_long(setting, warm=False)
        finally:
            self._push(self._old, Update())
        return self._compared(setting, samples, hits, self._new)

    def _compared(
        self, setting: Setting, samples: Sequence[Sampled], note: str = "", trainer: Trainer | None = None
    ) -> Outcome:
        """The samples scored by the trainer (the old weights', by default)."""
        by = trainer or self._old

        def score(rows: int = ROWS) -> Scored:
            return by.score(samples, setting.sampling, setting.trainer, rows)

        return Outcome(score(), note=note, again=lambda: score(ROWS // 2))

    def _warm(self) -> None:
        self._generate([self._work.long_prompt], Sampling(), [0], max_tokens=2)

    def _sample_long(self, setting: Setting, warm: bool = True) -> tuple[list[Sampled], str]:
        """Completions of the long prompt, and how much of it came from the cache."""
        if warm:
            self._warm()
        count = max(4, self._work.requests // SLOW_SHARE)
        prompts = [self._work.long_prompt] * count
        samples, cached = self._generate(prompts, setting.sampling, self._work.seeds(count), ignore_eos=True)
        return samples, f"{cached / count:.0f} of {len(self._work.long_prompt)} prompt tokens came from the cache"

    def _sample(
        self, prompts: Sequence[tuple[int, ...]], sampling: Sampling, seeds: Sequence[int] | None = None
    ) -> list[Sampled]:
        return self._generate(prompts, sampling, seeds or self._work.seeds(len(prompts)))[0]

    def _generate(
        self,
        prompts: Sequence[tuple[int, ...]],
        sampling: Sampling,
        seeds: Sequence[int],
        max_tokens: int | None = None,
        ignore_eos: bool = False,
    ) -> tuple[list[Sampled], int]:
        """Completions in order, and how many prompt tokens came from the cache in all."""
        from vllm import SamplingParams

        parameters = [
            SamplingParams(
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                top_k=sampling.top_k,
                max_tokens=max_tokens or self._work.settings.max_new_tokens,
                seed=seed,
                stop_token_ids=[] if ignore_eos else [self._work.eos_id],
                ignore_eos=ignore_eos,
                logprobs=0,
                flat_logprobs=True,
                detokenize=False,
            )
            for seed in seeds
        ]
        requests = [{"prompt_token_ids": list(prompt)} for prompt in prompts]
        outputs = self._engine.generate(requests, parameters, use_tqdm=False)
        samples = [_sampled(prompt, output.outputs[0]) for prompt, output in zip(prompts, outputs, strict=True)]
        return samples, sum(output.num_cached_tokens or 0 for output in outputs)


def engine_arguments(directory: Path, options: EngineOptions) -> dict[str, Any]:
    """vLLM's arguments for the options; all else as the trainer's sampler has it."""
    import torch

    arguments: dict[str, Any] = {
        "model": str(directory),
        "load_format": "safetensors",
        "dtype": options.dtype,
        "max_model_len": model_length(directory),
        "max_num_seqs": _CONCURRENT,
        "max_num_batched_tokens": max(LONGEST, 16 * _CONCURRENT),
        "enable_chunked_prefill": False,
        "enable_prefix_caching": options.prefix_caching,
        "block_size": BLOCK,
        "logprobs_mode": options.logprobs_mode,
        "kv_cache_dtype": options.kv_cache_dtype,
        "enforce_eager": True,
        "skip_tokenizer_init": True,
        "disable_log_stats": True,
        "seed": 0,
    }
    if options.float32_head:
        arguments["hf_overrides"] = {"head_dtype": "float32"}
    if options.async_scheduling is not None:
        arguments["async_scheduling"] = options.async_scheduling
    if torch.cuda.is_available():
        arguments["gpu_memory_utilization"] = GPU_SHARE
    else:
        arguments["kv_cache_memory_bytes"] = _CACHE_BYTES
    return arguments


def model_length(directory: Path) -> int:
    """Longest sequence of the audit under this model."""
    from transformers import AutoConfig

    positions = getattr(AutoConfig.from_pretrained(directory), "max_position_embeddings", None)
    return min(LONGEST, positions or LONGEST)


def _sampled(prompt: tuple[int, ...], output: Any) -> Sampled:
    if output.finish_reason not in ("stop", "length"):
        raise EngineError(f"vLLM ended a request with finish_reason {output.finish_reason!r}")
    flat = output.logprobs
    logprobs = tuple(flat.logprobs[start] for start in flat.start_indices)  # the sampled token stands first
    return Sampled(prompt, tuple(output.token_ids), logprobs)


def _same_tokens(samples: Sequence[Sampled], others: Sequence[Sampled], where: str) -> str:
    same = sum(a.completion_ids == b.completion_ids for a, b in zip(samples, others, strict=True))
    return f"{same} of {len(samples)} completions have the tokens they have {where}"
