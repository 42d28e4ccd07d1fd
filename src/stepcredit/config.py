"""The configuration: every key, its type, its default, and errors that name the nearest right one.

A stage receives only the section it reads, as JSON (`Section.model_validate_json`), so that a change of one key
reruns what depends on that key and nothing else.
"""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, ValidationError, model_validator

from stepcredit.loss_settings import DPPOSettings, LossSettings
from stepcredit.section import Name as Name
from stepcredit.section import Positive as Positive
from stepcredit.section import Rate as Rate
from stepcredit.section import Section as Section
from stepcredit.section import Share as Share
from stepcredit.stability_settings import KVCacheType, StabilitySettings


class ConfigError(ValueError):
    """The configuration is wrong; the message names the file, the key and the nearest right value."""


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
    style: Literal["attempts", "steps"] = "attempts"
    """What a paragraph of a demonstration is: a whole attempt, or one operation with the numbers that remain."""

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

    steps: Positive = 1200
    batch_size: Positive = 32
    learning_rate: Rate = 5e-3
    min_learning_rate: Annotated[float, Field(ge=0)] = 2.5e-4
    warmup_steps: Annotated[int, Field(ge=0)] = 60
    decay_steps: Annotated[int, Field(ge=0)] = 1140
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
    kv_cache_dtype: KVCacheType = "auto"
    gpu_memory_utilization: Share = 0.4
    logprobs_mode: Literal["processed_logprobs", "raw_logprobs"] = "processed_logprobs"
    """Raw log-probs ignore the temperature: wrong for a trainer at any but 1 (a setting of the parity ablation)."""
    reset_cache: bool = True
    """Forget the prefix cache at each weight update; false serves stale state (a setting of the parity ablation)."""
    update_after: Positive | None = None
    """A weight update lands in flight, after so many tokens of each completion; null: between batches."""


class RLSettings(Section):
    """The RL loop, common to all arms."""

    prompts_per_step: Positive = 16
    rollouts_per_prompt: Annotated[int, Field(ge=2)] = 8
    temperature: Rate = 1.0
    max_new_tokens: Positive = 448
    warmup_steps: Annotated[int, Field(ge=0)] = 5
    loss: LossSettings = DPPOSettings()
    head_size: Positive = 32
    """Top-k of the sampler at each position, for a loss that centers with it."""
    draws: Positive = 8
    """Further tokens drawn at each position, for a loss that centers with them."""
    drift_positions: Annotated[int, Field(ge=0)] = 0
    """Positions of each micro-batch at which the drift of the loss is measured (needs the top-k); 0: none."""
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

    learning_rates: Annotated[list[Rate], Field(min_length=1)] = [2e-5, 5e-5, 1.5e-4, 3e-4]
    steps: Positive = 20
    seed: int = 100
    samples: Positive = 4


class ScorerSettings(Section):
    """Which model scores the answers, and how.

    `frozen`: the SFT checkpoint; `moving`: the current policy; `average`: a moving average of the policy's weights.
    """

    model: Literal["frozen", "moving", "average"]
    kind: Literal["tree", "engine", "cached", "batched", "naive"] = "tree"
    decay: Annotated[float, Field(ge=0, lt=1)] = 0.9
    """Of the moving average: the share of itself that it keeps at each step."""

    @model_validator(mode="after")
    def _engine_moves(self) -> ScorerSettings:
        if self.kind == "engine" and self.model != "moving":
            raise ValueError(
                'kind "engine" scores with the sampler\'s engine, which holds the policy, so the scorer moves;'
                ' for another one take "tree" or "cached"'
            )
        return self


class ShapingSettings(Section):
    """Shaping by a potential (SPEC section 4); the defaults are the write-up's method as it stands."""

    beta: float = 0.1
    gamma: float = 0.99
    temperature: Rate = 1.0
    clip: Rate = 5.0
    max_paragraph_len: Positive | None = 32
    """Longest paragraph in tokens (128 at paper scale); null: no guard against reward hacking."""
    unit: Literal["paragraph", "sentence"] = "paragraph"
    """What is credited: what blank lines part, or sentences too."""
    reference_answer: Literal["never", "all_incorrect", "always"] = "never"
    """Groups whose bank holds a reference answer among the correct ones."""
    leave_own_out: bool = False
    """Leave the rollout's own answer out of the bank that it is scored with."""
    length_normalised: bool = False
    """Divide an answer's log-likelihood by its number of tokens."""
    first_paragraph: Literal["empty_reasoning", "prompt", "unshaped"] = "empty_reasoning"
    """What the first paragraph is measured from: an empty reasoning, the prompt alone, or nothing."""
    closing_tag: bool = False
    """Whether `</reasoning>` carries the shaping of the last paragraph."""
    well_formed_only: bool = False
    """Whether malformed and truncated rollouts keep the group advantage alone."""
    continuations: Positive = 4
    """Of `prefix_value`: how many are sampled at each boundary."""


class ArmSettings(Section):
    """A named RL configuration."""

    label: str
    credit: Literal[
        "group_advantage", "raw_reward", "contrastive_potential", "reference_likelihood", "prefix_value", "own"
    ]
    scheme: Name | None = None
    """Of the credit "own": the scheme that `stepcredit/credit/{scheme}.py` builds (docs/howto/credit-scheme.md)."""
    scorer: ScorerSettings | None = None
    shaping: ShapingSettings | None = None
    question: str | None = None
    """What an arm beside the main ones asks: the report shows it under failure modes and open questions."""
    seeds: Positive | None = None
    """How many of the seeds at most, the first ones; null: all."""
    steps: Annotated[list[Positive], Field(min_length=1)] | None = None
    """Some of the evaluated steps, the last one among them; null: all."""

    @model_validator(mode="after")
    def _scheme_exists(self) -> ArmSettings:
        if (self.credit == "own") != (self.scheme is not None):
            raise ValueError('credit "own" needs the name of a scheme, and no other credit takes one')
        if self.scheme is not None and not (Path(__file__).parent / "credit" / f"{self.scheme}.py").is_file():
            raise ValueError(f'scheme is "{self.scheme}", but the package has no file credit/{self.scheme}.py')
        return self

    @property
    def own_modules(self) -> tuple[str, ...]:
        """Modules of the package that only this arm runs, for its code digest."""
        return (f"credit.{self.scheme}",) if self.scheme else ()

    @model_validator(mode="after")
    def _scorer_fits_credit(self) -> ArmSettings:
        if self.credit in ("group_advantage", "raw_reward") and (self.scorer or self.shaping):
            raise ValueError(f'credit "{self.credit}" takes no scorer and no shaping')
        if self.credit in ("contrastive_potential", "reference_likelihood") and not (self.scorer and self.shaping):
            raise ValueError(f'credit "{self.credit}" needs a scorer and shaping')
        if self.credit == "prefix_value" and (self.scorer or not self.shaping):
            raise ValueError('credit "prefix_value" needs shaping and takes no scorer: it samples')
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
    cap_shares: list[Annotated[float, Field(gt=0, le=1)]] = [0.25, 0.375, 0.5, 0.75, 1.0]
    """Smaller token caps, as shares of `max_new_tokens`, at which the same completions are judged again."""

    @model_validator(mode="after")
    def _steps_ordered(self) -> EvaluationSettings:
        if self.steps != sorted(set(self.steps)):
            raise ValueError("steps must be in increasing order, each once")
        if max(self.pass_k) > self.samples:
            raise ValueError(f"pass_k asks for pass@{max(self.pass_k)} of {self.samples} samples a puzzle")
        return self


class ParityAuditSettings(Section):
    """The audit of sampler against trainer (`stepcredit parity`)."""

    settings: list[str] | None = None
    """Names of the settings to measure; null: all of them."""
    tokens: Positive = 4000
    """Sampled tokens a setting, about; slow ones take a third."""
    max_new_tokens: Positive = 128
    weight_change: Rate = 0.05
    """Size of the weight update that is pushed, as a share of each matrix's spread."""
    seed: int = 0


class AblationRunSettings(Section):
    """What one run of the parity ablation sets in `sampler`."""

    logprobs_mode: Literal["processed_logprobs", "raw_logprobs"] = "processed_logprobs"
    reset_cache: bool = True


class ParityAblationSettings(Section):
    """Short RL runs of the baseline arm under settings that the audit flags, against the right one."""

    runs: dict[Name, AblationRunSettings] = {
        "right": AblationRunSettings(),
        "raw": AblationRunSettings(logprobs_mode="raw_logprobs"),
        "stale": AblationRunSettings(reset_cache=False),
    }
    """The first run is the one that the others are compared with."""
    steps: Positive = 10
    temperature: Rate = 0.8
    update_after: Positive = 96
    """Tokens of a completion after which the weight update lands."""
    seed: int = 0


class ParitySettings(Section):
    """Sampler against trainer."""

    models: Annotated[list[Literal["sft", "rl", "random"]], Field(min_length=1)] = ["sft", "rl"]
    """The SFT checkpoint, the baseline after RL (first seed), random weights in `random_model`'s shape."""
    random_model: ModelSettings = ModelSettings(
        hidden_size=576,
        layers=30,
        intermediate_size=1536,
        attention_heads=9,
        key_value_heads=3,
        head_dim=64,
    )
    random_tokens: Positive = 600
    """Sampled tokens a setting with the random model, in the place of `audit.tokens`: it is large."""
    audit: ParityAuditSettings = ParityAuditSettings()
    ablation: ParityAblationSettings = ParityAblationSettings()


class SignalSettings(Section):
    """Does the potential mean anything? At boundaries of held-out rollouts it is set against sampled success rates."""

    arms: list[Name] = ["baseline"]
    """Arms whose last checkpoint (first seed) is looked at, beside the SFT checkpoint."""
    puzzles: Positive = 64
    rollouts: Annotated[int, Field(ge=2)] = 8
    """Of each puzzle: the group whose answers are the bank."""
    boundaries: Positive = 200
    """How many boundaries are drawn, of groups with right and wrong answers."""
    continuations: Positive = 20
    temperature: Rate = 1.0
    max_concurrent: Positive = 128
    shaping: ShapingSettings = ShapingSettings()
    """What the potential is computed with."""
    seed: int = 0


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
    stability: StabilitySettings = StabilitySettings()
    signal: SignalSettings = SignalSettings()
    scoring: ScoringSettings = ScoringSettings()
    statistics: StatisticsSettings = StatisticsSettings()
    parity: ParitySettings = ParitySettings()
    report: ReportSettings = ReportSettings()

    @model_validator(mode="after")
    def _consistent(self) -> Config:
        if self.baseline not in self.arms:
            raise ValueError(f'baseline is "{self.baseline}", which is not one of the arms: {", ".join(self.arms)}')
        if len(set(self.seeds)) != len(self.seeds):
            raise ValueError("seeds must differ from each other")
        for name, arm in self.arms.items():
            self._subset_fits(name, arm)
        for name in self.signal.arms:
            if name not in self.arms:
                raise ValueError(f'signal.arms names "{name}", which is not one of the arms: {", ".join(self.arms)}')
        longest = max(self.rl.max_new_tokens, self.evaluation.max_new_tokens)
        if longest >= self.sampler.max_model_len:
            raise ValueError(
                f"sampler.max_model_len ({self.sampler.max_model_len}) leaves no room for a prompt"
                f" beside {longest} new tokens"
            )
        if self.model.pretrained is None and self.sampler.max_model_len > self.model.max_positions:
            raise ValueError("sampler.max_model_len must not exceed model.max_positions")
        return self

    def _subset_fits(self, name: str, arm: ArmSettings) -> None:
        """The baseline has all seeds and steps, and every arm the last step, so that all can be compared."""
        if name == self.baseline and (arm.seeds or arm.steps):
            raise ValueError(f"arms.{name}: the baseline has all seeds and steps, leave `seeds` and `steps` out")
        every = self.trained_steps
        if arm.steps and arm.steps != [step for step in every if step in arm.steps or step == every[-1]]:
            raise ValueError(f"arms.{name}.steps must be some of {every}, in that order, each once, the last included")

    @property
    def trained_steps(self) -> list[int]:
        """The evaluated steps but 0, which is the SFT checkpoint."""
        return [step for step in self.evaluation.steps if step > 0]

    def seeds_of(self, arm: str) -> list[int]:
        return self.seeds[: self.arms[arm].seeds]

    def steps_of(self, arm: str) -> list[int]:
        """The steps after which an arm is evaluated."""
        return self.arms[arm].steps or self.trained_steps


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
        lines = [_line(dict(detail), files) for detail in error.errors()]
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


def _line(detail: dict[str, Any], files: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    location, section = _walk(detail["loc"])
    return f"{_origin(location, files)}: {_explain(detail, location, section)}"


def _explain(detail: dict[str, Any], location: Sequence[int | str], section: type[Section]) -> str:
    """One line for one of pydantic's findings: the key, what is wrong, the nearest right thing."""
    path = [str(part) for part in location if part != "[key]"]
    key = ".".join(path)
    kind = detail["type"]
    if kind == "extra_forbidden":
        known = list(section.model_fields)
        where = ".".join(path[:-1]) or "the top level"
        return f"{key} is not a known key; {where} knows: {', '.join(known)}{_nearest(path[-1], known)}"
    if kind == "missing":
        return f"{key} is missing"
    if kind == "literal_error":
        known = [part.strip("' ") for part in detail["ctx"]["expected"].replace(" or ", ", ").split(",")]
        return f'{key} is "{detail["input"]}"; known values: {", ".join(known)}{_nearest(detail["input"], known)}'
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        known = [tag.strip("' ") for tag in detail["ctx"].get("expected_tags", "").split(",")]
        if kind == "union_tag_not_found":
            return f"{key}.name is missing"
        tag = detail["ctx"]["tag"]
        return f'{key}.name is "{tag}"; known values: {", ".join(known)}{_nearest(tag, known)}'
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


def _walk(location: Sequence[int | str]) -> tuple[tuple[int | str, ...], type[Section]]:
    """The keys of a location as a user wrote them, and the section class that holds the last one.

    pydantic puts the name of the chosen class of a union (of the losses) into the location: it is no key.
    """
    annotation: Any = Config
    section: type[Section] = Config
    path: list[int | str] = []
    for part in location:
        annotation = _inner(annotation)
        if isinstance(annotation, dict):
            annotation = annotation.get(part, Section)
            continue
        path.append(part)
        if isinstance(annotation, type) and issubclass(annotation, Section):
            section = annotation
            field = section.model_fields.get(str(part))
            annotation = field.annotation if field else None
        else:  # of a mapping or a list: the type of what it holds
            annotation = next(reversed(typing.get_args(annotation)), None)
    return tuple(path), section


def _inner(annotation: Any) -> Any:
    """An annotation without Annotated and None; a union of sections as a mapping of their names to them."""
    while typing.get_origin(annotation) is Annotated:
        annotation = typing.get_args(annotation)[0]
    if typing.get_origin(annotation) not in (typing.Union, types.UnionType):
        return annotation
    members = [member for member in typing.get_args(annotation) if member is not type(None)]
    if len(members) == 1:
        return _inner(members[0])
    return {member.model_fields["name"].default: member for member in members}
