"""The settings of the audit: what each changes about sampler, trainer or weight update, and what is known about it."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from stepcredit.provenance.errors import UserError

Known = Literal["good", "bad", "lossy"]
"""good: both sides must agree up to rounding. bad: must be flagged. lossy: coarse by design, any verdict."""

Procedure = Literal["plain", "alone", "reordered", "cached", "update", "served"]
PauseMode = Literal["keep", "wait", "abort"]


@dataclass(frozen=True)
class EngineOptions:
    """What takes a new engine to change.

    Attributes:
        dtype: of weights and activations.
        float32_head: whether the unembedding is computed in float32 over a coarser body.
        async_scheduling: None for vLLM's own choice.
    """

    dtype: str = "float32"
    logprobs_mode: str = "processed_logprobs"
    prefix_caching: bool = True
    float32_head: bool = False
    kv_cache_dtype: str = "auto"
    async_scheduling: bool | None = None


@dataclass(frozen=True)
class Sampling:
    """What the sampler draws from; `top_p` 1 and `top_k` 0 leave the distribution whole."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0


@dataclass(frozen=True)
class TrainerOptions:
    """How the trainer computes the log-probs.

    Attributes:
        renormalise: over the tokens that top-p and top-k keep, as the sampler does.
    """

    dtype: str = "float32"
    float32_head: bool = False
    renormalise: bool = True


@dataclass(frozen=True)
class Update:
    """How a weight update is done.

    Attributes:
        reset: forget the prefix cache (offline), or what is cached of the requests under way (served, `keep`).
        redispatch: make a tied lm_head use the new weights.
        pause: mode of vLLM's `/pause` before it, on a served engine.
    """

    reset: bool = True
    redispatch: bool = True
    pause: PauseMode | None = None


@dataclass(frozen=True)
class Setting:
    """One row of the audit.

    Attributes:
        area: heading that groups settings.
        what: in words.
        known: what is known about it.
        bad_on: "cpu" where `bad` holds on a CPU only (elsewhere it is lossy).
    """

    name: str
    area: str
    what: str
    known: Known
    procedure: Procedure = "plain"
    engine: EngineOptions = EngineOptions()
    sampling: Sampling = Sampling()
    trainer: TrainerOptions = TrainerOptions()
    update: Update = Update()
    bad_on: Literal["cpu"] | None = None

    @property
    def formats(self) -> tuple[str, ...]:
        """Number formats in use, for the noise band."""
        cache = self.engine.kv_cache_dtype
        coarse = (cache,) if cache in ("fp8_e4m3", "fp8_e5m2") else ()
        return (self.engine.dtype, self.trainer.dtype, *coarse)


RAW = EngineOptions(logprobs_mode="raw_logprobs")
BF16 = EngineOptions(dtype="bfloat16")
BF16_HEAD = EngineOptions(dtype="bfloat16", float32_head=True)
TOP_P, TOP_K = Sampling(0.8, top_p=0.9), Sampling(0.8, top_k=20)

SEMANTICS, BATCH, CACHE, UPDATE, IN_FLIGHT, SCHEDULING, PRECISION, KV_CACHE = (
    "log-prob semantics",
    "batch",
    "prefix cache",
    "weight update",
    "update in flight",
    "scheduling",
    "precision",
    "KV cache type",
)
AREAS = (SEMANTICS, CACHE, UPDATE, IN_FLIGHT, SCHEDULING, BATCH, PRECISION, KV_CACHE)

KV_TYPES_LOSSY = ("fp8_e4m3", "fp8_e5m2")
KV_TYPES_GARBAGE_ON_CPU = (
    "bfloat16",
    "float16",
    "int8_per_token_head",
    "int4_per_token_head",
    "fp8_per_token_head",
    "nvfp4",
    "turboquant_4bit_nc",
)
"""vLLM's CPU backend starts with these and returns garbage: its list of types is not enforced."""


def _semantics() -> list[Setting]:
    found = []
    for temperature in (1.0, 0.8, 0.6):
        sampling = Sampling(temperature)
        found += [
            Setting(f"processed_t{temperature}", SEMANTICS, f"processed log-probs, temperature {temperature}", "good",
                    sampling=sampling),
            Setting(f"raw_t{temperature}", SEMANTICS, f"raw log-probs, temperature {temperature}",
                    "good" if temperature == 1 else "bad", engine=RAW, sampling=sampling),
        ]  # fmt: skip
    for name, sampling, what in (("top_p", TOP_P, "top-p 0.9"), ("top_k", TOP_K, "top-k 20")):
        what = f"{what}, temperature 0.8"
        found += [
            Setting(f"processed_{name}", SEMANTICS, f"processed, {what}, trainer renormalised", "good",
                    sampling=sampling),
            Setting(f"processed_{name}_plain_trainer", SEMANTICS, f"processed, {what}, trainer not renormalised",
                    "bad", sampling=sampling, trainer=TrainerOptions(renormalise=False)),
            Setting(f"raw_{name}", SEMANTICS, f"raw, {what}, trainer renormalised", "bad", engine=RAW,
                    sampling=sampling),
        ]  # fmt: skip
    return found


def _backend() -> list[Setting]:
    served = "update during generation, /pause mode"
    return [
        Setting("prefix_cache_warm", CACHE, "a long shared prompt read from the cache", "good", "cached"),
        Setting("prefix_cache_off", CACHE, "prefix caching off", "good", "cached",
                engine=EngineOptions(prefix_caching=False)),
        Setting("update_reset", UPDATE, "weights pushed, cache reset", "good", "update"),
        Setting("update_cache_kept", UPDATE, "weights pushed, cache kept: a long cached prompt is stale", "bad",
                "update", update=Update(reset=False)),
        Setting("update_tied_head_stale", UPDATE, "weights pushed, tied lm_head not dispatched anew", "bad", "update",
                update=Update(redispatch=False), bad_on="cpu"),
        Setting("in_flight_keep_cleared", IN_FLIGHT, f"{served} keep, cache cleared", "good", "served",
                update=Update(pause="keep")),
        Setting("in_flight_keep_stale", IN_FLIGHT, f"{served} keep, cache kept", "bad", "served",
                update=Update(reset=False, pause="keep")),
        Setting("in_flight_wait", IN_FLIGHT, f"{served} wait", "good", "served", update=Update(pause="wait")),
        Setting("in_flight_abort", IN_FLIGHT, f"{served} abort", "good", "served", update=Update(pause="abort")),
        Setting("async_scheduling_off", SCHEDULING, "async scheduling off", "good",
                engine=EngineOptions(async_scheduling=False)),
        Setting("async_scheduling_on", SCHEDULING, "async scheduling on", "good",
                engine=EngineOptions(async_scheduling=True)),
        Setting("batch_of_one", BATCH, "one request at a time", "good", "alone"),
        Setting("batch_reordered", BATCH, "the same requests in another order", "good", "reordered"),
    ]  # fmt: skip


def _precision() -> list[Setting]:
    return [
        Setting("trainer_bf16", PRECISION, "float32 sampler, bfloat16 trainer", "good",
                trainer=TrainerOptions("bfloat16")),
        Setting("trainer_bf16_head_fp32", PRECISION, "float32 sampler, bfloat16 trainer with a float32 head", "good",
                trainer=TrainerOptions("bfloat16", float32_head=True)),
        Setting("sampler_bf16", PRECISION, "bfloat16 sampler, float32 trainer", "good", engine=BF16),
        Setting("sampler_bf16_head_fp32", PRECISION, "bfloat16 sampler with a float32 head, float32 trainer", "good",
                engine=BF16_HEAD),
        Setting("both_bf16", PRECISION, "both bfloat16", "good", engine=BF16, trainer=TrainerOptions("bfloat16")),
        Setting("both_bf16_trainer_head_fp32", PRECISION, "both bfloat16, float32 head in the trainer alone", "good",
                engine=BF16, trainer=TrainerOptions("bfloat16", float32_head=True)),
        Setting("both_bf16_heads_fp32", PRECISION, "both bfloat16, both with a float32 head", "good",
                engine=BF16_HEAD, trainer=TrainerOptions("bfloat16", float32_head=True)),
        *[
            Setting(f"kv_{kind}", KV_CACHE, f"KV cache {kind}", "lossy", engine=EngineOptions(kv_cache_dtype=kind))
            for kind in KV_TYPES_LOSSY
        ],
        *[
            Setting(f"kv_{kind}", KV_CACHE, f"KV cache {kind} under float32", "bad",
                    engine=EngineOptions(kv_cache_dtype=kind), bad_on="cpu")
            for kind in KV_TYPES_GARBAGE_ON_CPU
        ],
    ]  # fmt: skip


_ALL = (*_semantics(), *_backend(), *_precision())
SETTINGS: dict[str, Setting] = {setting.name: setting for area in AREAS for setting in _ALL if setting.area == area}


def choose_settings(names: Sequence[str] | None) -> list[Setting]:
    """The settings of these names in the audit's order; all of them for None.

    Raises:
        UserError: a name is not known.
    """
    for name in names or ():
        if name not in SETTINGS:
            near = difflib.get_close_matches(name, SETTINGS, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise UserError(f"--setting {name} is not known{hint}; known settings: {', '.join(SETTINGS)}")
    return [setting for setting in SETTINGS.values() if names is None or setting.name in names]


def on_platform(setting: Setting, cpu: bool) -> Setting:
    """The setting with what is known about it on this platform."""
    return replace(setting, known="lossy") if setting.bad_on == "cpu" and not cpu else setting
