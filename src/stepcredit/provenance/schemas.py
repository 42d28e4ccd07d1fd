"""The columns of every Parquet file of a results directory, and a check that a file has them.

A type is an Arrow type's name, "large" and dictionary variants counted as the plain type; "?" marks what may
hold nulls, and so may be of type null where it holds nothing else.
"""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path
from typing import Any

_PUZZLE = {"nums": "list<int64>", "target": "int64"}
_DEMONSTRATION = {**_PUZZLE, "prompt": "string", "completion": "string"}
_PARAGRAPH = (
    "struct<text: string, tokens: int64, potential_before: double?, potential_after: double?, shaping: double?>"
)
_BANK_ENTRY = "struct<answer: string, correct: bool, count: int64>"
_SHAPING = {
    "shaped_rollouts": "double?",
    "shaping_mean": "double?",
    "shaping_abs": "double?",
    "potential_first": "double?",
    "potential_last": "double?",
    "potential_clipped": "double?",
    "scorings": "int64?",
    "scorings_unique": "int64?",
    "tokens_scored": "int64?",
}

SCHEMAS: dict[str, dict[str, str]] = {
    "raw": {"nums": "list<int64>?", "target": "int64?", "query": "string", "response": "string"},
    "demonstrations": _DEMONSTRATION,
    "puzzles": _PUZZLE,
    "sft_metrics": {
        "step": "int64",
        "loss": "double",
        "learning_rate": "double",
        "grad_norm": "double",
        "tokens": "int64",
    },
    "timings": {"step": "int64", "phase": "string", "seconds": "double", "cpu_seconds": "double"},
    "rl_metrics": {
        "step": "int64",
        "reward": "double",
        "well_formed": "double",
        "finished": "double",
        "mixed_groups": "double",
        "length": "double",
        "length_max": "int64",
        "at_cap": "double",
        "paragraphs": "double",
        "paragraph_length": "double",
        "entropy": "double",
        "mean_ratio": "double",
        "mismatch_kl": "double",
        "mean_log_ratio": "double",
        "max_log_ratio": "double",
        "clipped": "double",
        "far": "double",
        "impossible": "double",
        "masked": "double",
        "effective_sample_size": "double",
        "entropy_gap": "double",
        "lag": "double",
        "outside_band": "bool",
        "grad_norm": "double",
        "loss": "double",
        "learning_rate": "double",
        "completion_tokens": "int64",
        "trained_tokens": "int64",
        "drift": "double",
        "total_variation": "double",
        **_SHAPING,
    },
    "rollouts": {
        "step": "int64",
        "group": "int64",
        "sample": "int64",
        **_PUZZLE,
        "completion": "string",
        "answer": "string?",
        "reward": "double",
        "well_formed": "bool",
        "finished": "bool",
        "tokens": "int64",
        "advantage": "double",
        "paragraphs": f"list<{_PARAGRAPH}>?",
        "likelihoods": "list<list<double>>?",
        "bank": f"list<{_BANK_ENTRY}>?",
    },
    "evaluation": {
        "puzzle": "int64",
        **_PUZZLE,
        "sample": "int64",
        "completion": "string",
        "answer": "string?",
        "reward": "double",
        "reason": "string",
        "well_formed": "bool",
        "finished": "bool",
        "tokens": "int64",
    },
    "drift": {
        "mismatch": "string",
        "rollout": "int64",
        "method": "string",
        "head": "int64",
        "full": "bool",
        "drift": "double",
        "total_variation": "double",
        "off_difference": "double",
    },
    "mismatch_cost": {
        "part": "string",
        "variant": "string",
        "repeat": "int64",
        "head": "int64",
        "draws": "int64",
        "tokens": "int64",
        "bytes": "int64",
        "seconds": "double",
        "cpu_seconds": "double",
    },
    "fingerprint": {
        "loss": "string",
        "label": "string",
        "model": "int64",
        "named": "string",
        "distance": "double",
        "next_distance": "double",
    },
    "gradients": {
        "loss": "string",
        "token": "int64",
        "role": "string",
        "draws": "int64",
        "gradient": "double",
        "moved": "bool",
    },
    "signal": {
        "puzzle": "int64",
        **_PUZZLE,
        "sample": "int64",
        "boundary": "int64",
        "boundaries": "int64",
        "prefix_tokens": "int64",
        "potential_frozen": "double",
        "potential_moving": "double",
        "continuations": "int64",
        "successes": "int64",
        "finished": "int64",
        "answers_right": "int64",
        "tokens": "int64",
    },
    "scoring_benchmark": {
        "model": "string",
        "scorer": "string",
        "repetition": "int64",
        "wall_s": "double",
        "scorings": "int64",
        "scorings_unique": "int64",
        "requests": "int64",
        "bytes": "int64",
        "tokens_computed": "int64",
        "tokens_minimum": "int64",
        "tokens_minimum_blocks": "int64",
        "tokens_cached": "int64",
        "scores": "list<double>",
    },
    "scoring_steps": {
        "model": "string",
        "scorer": "string",
        "step": "int64",
        "phase": "string",
        "seconds": "double",
        "cpu_seconds": "double",
        "scorings": "int64?",
        "prompts": "int64",
        "run_prompts": "int64",
    },
}
"""Kind of file -> column -> type."""

OPTIONAL = frozenset(_SHAPING) | {"drift", "total_variation"}
"""Columns that the run of an arm without shaping, or one that does not measure its drift, may lack."""

KINDS: dict[str, str] = {
    "data/raw.parquet": "raw",
    "data/clean.parquet": "demonstrations",
    "data/splits/demonstrations.parquet": "demonstrations",
    "data/splits/*.parquet": "puzzles",
    "sft/metrics.parquet": "sft_metrics",
    "sft/timings.parquet": "timings",
    "sweep/lr*/metrics.parquet": "rl_metrics",
    "sweep/lr*/timings.parquet": "timings",
    "sweep/lr*/rollouts.parquet": "rollouts",
    "sweep/lr*/validation.parquet": "evaluation",
    "rl/*/seed*/metrics.parquet": "rl_metrics",
    "rl/*/seed*/timings.parquet": "timings",
    "rl/*/seed*/rollouts.parquet": "rollouts",
    "eval/sft/step0.parquet": "evaluation",
    "eval/*/seed*/step*.parquet": "evaluation",
    "stability/runs/*/metrics.parquet": "rl_metrics",
    "stability/runs/*/timings.parquet": "timings",
    "stability/runs/*/evaluation.parquet": "evaluation",
    "stability/drift/drift.parquet": "drift",
    "stability/drift/start.parquet": "evaluation",
    "stability/cost/cost.parquet": "mismatch_cost",
    "stability/fingerprint/fingerprint.parquet": "fingerprint",
    "stability/fingerprint/gradients.parquet": "gradients",
    "signal/sft/step0.parquet": "signal",
    "signal/*/seed*/step*.parquet": "signal",
    "scoring/run.parquet": "scoring_benchmark",
    "scoring/large.parquet": "scoring_benchmark",
    "scoring/steps.parquet": "scoring_steps",
}
"""Pattern of a path below the results directory -> kind of file; the first that fits counts."""


def kind_of(path: str) -> str | None:
    """The kind of a file, by its path relative to the results directory; None where none is documented."""
    return next((kind for pattern, kind in KINDS.items() if fnmatch.fnmatchcase(path, pattern)), None)


def check_schema(path: Path, kind: str) -> list[str]:
    """What is wrong with the columns of a Parquet file; empty if nothing is.

    Raises:
        KeyError: `kind` is none of `SCHEMAS`.
        OSError, ValueError: the file cannot be read as Parquet (pyarrow's ArrowInvalid is a ValueError).
    """
    import pyarrow.parquet as pq

    wanted = SCHEMAS[kind]
    with pq.ParquetFile(path) as file:
        found = {column.name: column.type for column in file.schema_arrow}
        full = [name for name, type_ in wanted.items() if name in found and not type_.endswith("?")]
        nulls = {name: file.read(columns=[name])[name].null_count for name in full}
    absent = [name for name in wanted if name not in found and name not in OPTIONAL]
    problems = [f"has no column {name} ({_plain(wanted[name])})" for name in absent]
    problems += [f"has a column {name}, which {kind} files should not" for name in found if name not in wanted]
    problems += [
        f"column {name} is {type_name(found[name])}, not {_plain(type_)}"
        for name, type_ in wanted.items()
        if name in found and not _fits(type_name(found[name]), type_)
    ]
    problems += [f"column {name} holds {count} nulls, not none" for name, count in nulls.items() if count]
    return problems


def _plain(type_: str) -> str:
    return type_.replace("?", "")


def _fits(found: str, wanted: str) -> bool:
    """Whether a type of a file is the documented one, or null where that may be null."""
    if wanted.endswith("?") and found in ("null", "list<null>"):
        return True
    pattern = re.sub(r"(\w+)\?", r"(?:\1|null)", wanted.removesuffix("?"))
    return re.fullmatch(pattern, found) is not None


def type_name(type_: Any) -> str:
    """The name of an Arrow type as `SCHEMAS` writes it, without marks of nullability."""
    import pyarrow as pa

    if pa.types.is_dictionary(type_):
        return type_name(type_.value_type)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return f"list<{type_name(type_.value_type)}>"
    if pa.types.is_struct(type_):
        fields = (f"{type_.field(i).name}: {type_name(type_.field(i).type)}" for i in range(type_.num_fields))
        return f"struct<{', '.join(fields)}>"
    return {"large_string": "string", "string_view": "string"}.get(str(type_), str(type_))
