"""The configuration: every key, its type, its default, and errors that name the nearest right one.

A stage receives only the section it reads, as JSON (`Section.model_validate_json`), so that a change of one key
reruns what depends on that key and nothing else.
"""

from __future__ import annotations

import difflib
import json
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

NAME_PATTERN = r"^[a-z][a-z0-9_]*$"

Positive = Annotated[int, Field(gt=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Rate = Annotated[float, Field(gt=0)]
Name = Annotated[str, Field(pattern=NAME_PATTERN)]


class ConfigError(ValueError):
    """The configuration is wrong; the message names the file, the key and the nearest right value."""


class Section(BaseModel):
    """A part of the configuration: unknown keys are refused, values never change after validation."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)

    def canonical_json(self) -> str:
        """The section as JSON with sorted keys: what a rule puts into `params` and a stage reads back."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))


# -- data ---------------------------------------------------------------------------------------------------------


class SyntheticSource(Section):
    """Puzzles and demonstration traces that we generate, deliberately dirty so that cleaning has work."""

    numbers: Annotated[int, Field(ge=3, le=4)] = 3
    largest_number: Annotated[int, Field(ge=5, le=99)] = 15
    smallest_target: Positive = 10
    largest_target: Positive = 99
    largest_intermediate: Positive = 100
    demonstrations: Positive = 40_000
    dirty_share: Share = 0.1

    @model_validator(mode="after")
    def _ordered(self) -> SyntheticSource:
        if not self.smallest_target <= self.largest_target <= self.largest_intermediate:
            raise ValueError("smallest_target <= largest_target <= largest_intermediate must hold")
        if self.largest_number > self.largest_intermediate:
            raise ValueError("largest_number must not exceed largest_intermediate, the tokenizer's largest number")
        return self


class HubSource(Section):
    """A data set of the Hugging Face hub with one column of prompts and one of responses."""

    dataset: str = "asingh15/countdown_tasks_3to4-dpo"
    split: str = "train"
    query_column: str = "query"
    response_column: str = "response_ws"


class FileSource(Section):
    """A JSONL or Parquet file with the columns `query`, `response_ws` or `nums`, `target`, `response`."""

    path: str | None = None


class SplitSettings(Section):
    """How many puzzles are kept for choosing (validation) and for reporting (held-out)."""

    validation: Positive = 256
    heldout: Positive = 512
    rl_share: Share = 0.4
    """Share of the remaining (train) puzzles that SFT does not see and RL draws from; 0: both use all of them."""


class DataSettings(Section):
    source: Literal["synthetic", "hub", "file"] = "synthetic"
    synthetic: SyntheticSource = SyntheticSource()
    hub: HubSource = HubSource()
    file: FileSource = FileSource()
    splits: SplitSettings = SplitSettings()
    seed: int = 0

    @model_validator(mode="after")
    def _file_has_path(self) -> DataSettings:
        if self.source == "file" and not self.file.path:
            raise ValueError('source is "file" but file.path is not set')
        return self


# -- model and training -------------------------------------------------------------------------------------------


class ModelSettings(Section):
    """A Qwen3 to initialise at random with our own tokenizer, or a pretrained directory."""

    pretrained: str | None = None
    hidden_size: Positive = 96
    layers: Positive = 3
    intermediate_size: Positive = 288
    attention_heads: Positive = 3
    key_value_heads: Positive = 1
    head_dim: Annotated[int, Field(ge=32, multiple_of=16)] = 32
    """vLLM on a CPU has no attention kernel below 32."""
    max_positions: Positive = 512

    @model_validator(mode="after")
    def _heads_divide(self) -> ModelSettings:
        if self.attention_heads % self.key_value_heads:
            raise ValueError("attention_heads must be a multiple of key_value_heads")
        return self


class OptimizerSettings(Section):
    """AdamW with gradient clipping."""

    beta1: Share = 0.9
    beta2: Share = 0.95
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    max_grad_norm: Rate = 1.0


class SFTSettings(Section):
    """Supervised fine-tuning. Schedule: linear warm-up, constant, linear decay over the last `decay_steps`."""

    steps: Positive = 1000
    batch_size: Positive = 32
    learning_rate: Rate = 5e-3
    min_learning_rate: Annotated[float, Field(ge=0)] = 2.5e-4
    warmup_steps: Annotated[int, Field(ge=0)] = 60
    decay_steps: Annotated[int, Field(ge=0)] = 940
    max_tokens: Positive = 512
    """Demonstrations longer than this are left out, and counted."""
    optimizer: OptimizerSettings = OptimizerSettings(beta2=0.98, weight_decay=0.1)
    checkpoint_every: Positive = 250
    device: Literal["cpu", "cuda"] = "cpu"
    seed: int = 0

    @model_validator(mode="after")
    def _schedule_fits(self) -> SFTSettings:
        if self.warmup_steps + self.decay_steps > self.steps:
            raise ValueError("warmup_steps + decay_steps must not exceed steps")
        return self


class SamplerSettings(Section):
    """The vLLM engine: one in process per job."""

    dtype: Literal["float32", "bfloat16", "auto"] = "float32"
    max_model_len: Positive = 512
    max_concurrent: Positive = 128
    kv_cache_mib: Positive = 256
    block_size: Positive = 32
    gpu_memory_utilization: Share = 0.4


class LossSettings(Section):
    """The default loss of prime-rl (SPEC section 3)."""

    name: Literal["dppo_kl"] = "dppo_kl"
    dppo_mask_low: Share = 0.2
    dppo_mask_high: Share = 0.2
    adv_tau: float = 1.0
    kl_tau: Annotated[float, Field(ge=0)] = 1e-3


class RLSettings(Section):
    """The RL loop, common to all arms."""

    prompts_per_step: Positive = 16
    rollouts_per_prompt: Annotated[int, Field(ge=2)] = 8
    temperature: Rate = 1.0
    max_new_tokens: Positive = 448
    warmup_steps: Annotated[int, Field(ge=0)] = 5
    loss: LossSettings = LossSettings()
    filter_zero_advantages: bool = True
    optimizer: OptimizerSettings = OptimizerSettings()
    tokens_per_microbatch: Positive = 4096
    checkpoint_every: Positive = 10
    """A state to resume from is saved every so many steps."""
    keep_rollouts_every: Positive = 10
    """Rollouts with their credit are kept for the report at step 1 and every so many steps."""
    device: Literal["cpu", "cuda"] = "cpu"


class SweepSettings(Section):
    """The learning-rate sweep: baseline arm, one seed, judged on the validation puzzles."""

    learning_rates: Annotated[list[Rate], Field(min_length=1)] = [5e-5, 1.5e-4, 3e-4, 1e-3]
    steps: Positive = 20
    seed: int = 100
    samples: Positive = 4


class ScorerSettings(Section):
    """Which model scores the answers (`frozen`: the SFT checkpoint, `moving`: the current policy), and how."""

    model: Literal["frozen", "moving"]
    kind: Literal["tree", "engine", "cached", "batched", "naive"] = "tree"

    @model_validator(mode="after")
    def _engine_moves(self) -> ScorerSettings:
        if self.kind == "engine" and self.model == "frozen":
            raise ValueError(
                'kind "engine" scores with the sampler\'s engine, which holds the policy, so the scorer moves;'
                ' for a frozen one take "tree" or "cached"'
            )
        return self


class ShapingSettings(Section):
    """Contrastive potential shaping (SPEC section 4)."""

    beta: float = 0.1
    gamma: float = 0.99
    temperature: Rate = 1.0
    clip: Rate = 5.0
    max_paragraph_len: Positive | None = 32
    """Longest paragraph in tokens (128 at paper scale); null: no guard against reward hacking."""


class ArmSettings(Section):
    """A named RL configuration."""

    label: str
    credit: Literal["group_advantage", "contrastive_potential"]
    scorer: ScorerSettings | None = None
    shaping: ShapingSettings | None = None

    @model_validator(mode="after")
    def _scorer_fits_credit(self) -> ArmSettings:
        if self.credit == "group_advantage" and (self.scorer or self.shaping):
            raise ValueError('credit "group_advantage" takes no scorer and no shaping')
        if self.credit == "contrastive_potential" and not (self.scorer and self.shaping):
            raise ValueError('credit "contrastive_potential" needs a scorer and shaping')
        return self


class EvaluationSettings(Section):
    """Held-out evaluation: `samples` rollouts a puzzle at every step of `steps` (0 is the SFT checkpoint)."""

    steps: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)] = [0, 10, 20, 30, 40]
    samples: Positive = 4
    pass_k: list[Positive] = [1, 4]
    temperature: Rate = 0.8
    max_new_tokens: Positive = 448
    max_concurrent: Positive = 256
    seed: int = 0

    @model_validator(mode="after")
    def _steps_ordered(self) -> EvaluationSettings:
        if self.steps != sorted(set(self.steps)):
            raise ValueError("steps must be in increasing order, each once")
        if max(self.pass_k) > self.samples:
            raise ValueError(f"pass_k asks for pass@{max(self.pass_k)} of {self.samples} samples a puzzle")
        return self


class ScoringSettings(Section):
    """The scoring study: every scorer on the same recorded rollouts, and in the RL loop."""

    scorings: Positive = 300
    """Of the recorded workload, about: whole rollouts, the first of them always."""
    repetitions: Positive = 3
    enough_seconds: Rate = 10.0
    """A scorer that has taken this long on a workload is not repeated any more."""
    steps: Positive = 2
    """RL steps that are timed with each scorer."""
    prompts_per_step: Positive = 4
    large: ModelSettings = ModelSettings(
        hidden_size=576,
        layers=30,
        intermediate_size=1536,
        attention_heads=9,
        key_value_heads=3,
        head_dim=64,
        max_positions=2048,
    )
    """A larger shape with random weights; by default that of SmolLM2-135M."""
    large_vocabulary: Positive = 49_152
    large_trunk: Positive = 384
    """Tokens of its one trunk: recorded rollouts one after the other."""
    large_scorings: Positive = 24


class StatisticsSettings(Section):
    """Bootstrap over puzzles nested in seeds."""

    resamples: Positive = 2000
    confidence: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    seed: int = 0


class ReportSettings(Section):
    title: str = "Paragraph-level credit on Countdown"


class Config(Section):
    """The whole configuration; `config/config.yaml` documents each key for its user."""

    outdir: str = "results"
    data: DataSettings = DataSettings()
    model: ModelSettings = ModelSettings()
    sft: SFTSettings = SFTSettings()
    sampler: SamplerSettings = SamplerSettings()
    rl: RLSettings = RLSettings()
    sweep: SweepSettings = SweepSettings()
    arms: Annotated[dict[Name, ArmSettings], Field(min_length=1)]
    baseline: str = "baseline"
    seeds: Annotated[list[int], Field(min_length=1)] = [0, 1, 2]
    evaluation: EvaluationSettings = EvaluationSettings()
    scoring: ScoringSettings = ScoringSettings()
    statistics: StatisticsSettings = StatisticsSettings()
    report: ReportSettings = ReportSettings()

    @model_validator(mode="after")
    def _consistent(self) -> Config:
        if self.baseline not in self.arms:
            raise ValueError(f'baseline is "{self.baseline}", which is not one of the arms: {", ".join(self.arms)}')
        if len(set(self.seeds)) != len(self.seeds):
            raise ValueError("seeds must differ from each other")
        longest = max(self.rl.max_new_tokens, self.evaluation.max_new_tokens)
        if longest >= self.sampler.max_model_len:
            raise ValueError(
                f"sampler.max_model_len ({self.sampler.max_model_len}) leaves no room for a prompt"
                f" beside {longest} new tokens"
            )
        if self.model.pretrained is None and self.sampler.max_model_len > self.model.max_positions:
            raise ValueError("sampler.max_model_len must not exceed model.max_positions")
        return self


# -- loading, with errors that help -------------------------------------------------------------------------------


def load_config(*paths: Path, overrides: Mapping[str, Any] | None = None) -> Config:
    """Read YAML files, later ones and then `overrides` replacing keys of earlier ones at any depth; validate.

    Raises:
        ConfigError: a file cannot be read, is no YAML mapping, or the whole does not validate.
    """
    merged: dict[str, Any] = {}
    for path in paths:
        merged = _merge(merged, _read(path))
    return validate_config(_merge(merged, overrides or {}), sources=paths)


def validate_config(raw: Mapping[str, Any], sources: Sequence[Path | str] = ()) -> Config:
    """Validate a mapping that was merged from the files `sources` (searched for the culprit of an error).

    Raises:
        ConfigError: one line for each thing that is wrong, naming the file, the key and the nearest right one.
    """
    try:
        return Config.model_validate(raw)
    except ValidationError as error:
        files = [(str(source), _read(Path(source))) for source in sources]
        lines = [f"{_origin(detail['loc'], files)}: {_explain(dict(detail))}" for detail in error.errors()]
        raise ConfigError("\n".join(dict.fromkeys(lines))) from None


def _read(path: Path) -> dict[str, Any]:
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: is not YAML ({' '.join(str(error).split())})") from error
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise ConfigError(f"{path}: must hold a mapping of keys to values")
    return raw


def _origin(location: tuple[int | str, ...], files: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """The last file that sets the key at `location`, or the longest part of it."""
    for length in range(len(location), 0, -1):
        for name, content in reversed(files):
            if _holds(content, location[:length]):
                return name if length == len(location) or len(files) == 1 else f"{name} and --config"
    return files[-1][0] if len(files) == 1 else "the configuration"


def _holds(content: Any, location: Sequence[int | str]) -> bool:
    for part in location:
        if isinstance(content, Mapping) and part in content:
            content = content[part]
        elif isinstance(content, list) and isinstance(part, int) and part < len(content):
            content = content[part]
        else:
            return part == "[key]"
    return True


def _merge(base: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in overrides.items():
        old = merged.get(key)
        merged[key] = _merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def _explain(detail: dict[str, Any]) -> str:
    """One line for one of pydantic's findings: the key, what is wrong, the nearest right thing."""
    path = [str(part) for part in detail["loc"] if part != "[key]"]
    key = ".".join(path)
    kind = detail["type"]
    if kind == "extra_forbidden":
        known = list(_section_at(path[:-1]).model_fields)
        where = ".".join(path[:-1]) or "the top level"
        return f"{key} is not a known key; {where} knows: {', '.join(known)}{_nearest(path[-1], known)}"
    if kind == "missing":
        return f"{key} is missing"
    if kind == "literal_error":
        known = [part.strip("' ") for part in detail["ctx"]["expected"].replace(" or ", ", ").split(",")]
        return f'{key} is "{detail["input"]}"; known values: {", ".join(known)}{_nearest(detail["input"], known)}'
    if kind == "value_error":
        message = str(detail["ctx"]["error"])
        return f"{key}: {message}" if key else message
    if kind == "string_pattern_mismatch":
        return f'{key} is "{detail["input"]}"; a name is lower-case letters, digits and underscores, a letter first'
    message = detail["msg"][0].lower() + detail["msg"][1:]
    return f"{key} is {detail['input']!r}: {message}"


def _nearest(word: object, known: list[str]) -> str:
    near = difflib.get_close_matches(str(word), known, n=1, cutoff=0.5)
    return f' (did you mean "{near[0]}"?)' if near else ""


def _section_at(path: list[str]) -> type[Section]:
    """The section class that a dotted path leads to."""
    section: type[Section] = Config
    position = 0
    while position < len(path):
        annotation = section.model_fields[path[position]].annotation
        found = _section_in(annotation)
        if found is None:
            return section
        section, in_mapping = found
        position += 2 if in_mapping else 1
    return section


def _section_in(annotation: Any) -> tuple[type[Section], bool] | None:
    """The section class inside an annotation, and whether it is the value type of a mapping."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation, False
    origin = typing.get_origin(annotation)
    arguments = typing.get_args(annotation)
    if origin is Annotated:
        return _section_in(arguments[0])
    if origin in (typing.Union, types.UnionType):
        return next((found for found in map(_section_in, arguments) if found), None)
    if origin is dict:
        inner = _section_in(arguments[1])
        return (inner[0], True) if inner else None
    return None
