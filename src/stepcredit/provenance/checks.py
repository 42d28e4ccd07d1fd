"""The checks of content that need nothing above this floor: formats, schemas, splits, evaluation, steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from stepcredit.provenance.findings import AuditCheck, AuditContext, Finding
from stepcredit.provenance.formats import format_problem
from stepcredit.provenance.schemas import check_schema, kind_of

PuzzleKey: TypeAlias = tuple[tuple[int, ...], int]

SPLITS = ("demonstrations", "rl", "validation", "heldout")
KEPT_APART = ("validation", "heldout")
"""Splits whose puzzles no other split may hold; the first two may share theirs (data.splits.rl_share = 0)."""
EVALUATED = (("eval/", "evaluation", "heldout"), ("sweep/", "sweep", "validation"))
"""Where evaluations are, the section of the configuration with their samples, the split of their puzzles."""


def check_formats(context: AuditContext) -> Iterator[Finding]:
    """Parquet, safetensors and JSON files can be read; Parquet files have the documented columns."""
    for path in _artifacts(context):
        problem = format_problem(context.root / path)
        if problem:
            yield context.invalid(path, problem)
            continue
        kind = kind_of(path)
        if kind:
            for wrong in check_schema(context.root / path, kind):
                yield context.invalid(path, wrong)


def check_splits(context: AuditContext) -> Iterator[Finding]:
    """No puzzle is in two splits to be kept apart, or twice in one, whatever the order of its numbers."""
    paths = {split: f"data/splits/{split}.parquet" for split in SPLITS}
    present = {split: path for split, path in paths.items() if context.readable(path)}
    keys = {split: _puzzle_keys(context.root / path) for split, path in present.items()}
    for split, path in present.items():
        repeated = sum(count - 1 for count in Counter(keys[split]).values())
        if split != "demonstrations" and repeated:
            yield context.invalid(path, f"{repeated} puzzles are repeated, up to the order of the numbers")
        wanted = _setting(context.config, "data", "splits", split) if split in KEPT_APART else None
        if wanted is not None and wanted != len(keys[split]):
            yield context.invalid(path, f"{len(keys[split])} puzzles; data.splits.{split} is {wanted}")
    for apart in (split for split in KEPT_APART if split in present):
        for other in (split for split in present if SPLITS.index(split) < SPLITS.index(apart)):
            shared = len(set(keys[apart]) & set(keys[other]))
            if shared:
                yield context.invalid(present[apart], f"{shared} puzzles are in {present[other]} too")


def check_evaluations(context: AuditContext) -> Iterator[Finding]:
    """Every evaluation holds each puzzle of its split, by its row there, as often as asked."""
    for folder, section, split in EVALUATED:
        source = f"data/splits/{split}.parquet"
        if not context.readable(source):
            continue
        puzzles = _puzzle_keys(context.root / source)
        samples = _setting(context.config, section, "samples")
        for path in _artifacts(context):
            if path.startswith(folder) and kind_of(path) == "evaluation":
                for wrong in _evaluation_problems(context.root / path, split, puzzles, samples):
                    yield context.invalid(path, wrong)


def _evaluation_problems(path: Path, split: str, puzzles: list[PuzzleKey], samples: int | None) -> Iterator[str]:
    columns = _columns(path, "puzzle", "sample")
    pairs = list(zip(columns["puzzle"], columns["sample"], strict=True))
    per_puzzle = samples or len(set(columns["sample"]))
    wanted = {(puzzle, sample) for puzzle in range(len(puzzles)) for sample in range(per_puzzle)}
    if len(pairs) != len(wanted):
        yield f"{len(pairs)} rows, not {len(puzzles)} {split} puzzles x {per_puzzle} samples = {len(wanted)}"
    elif set(pairs) != wanted:
        puzzle, sample = min(wanted - set(pairs))
        yield f"puzzle {puzzle} has no sample {sample}, so another row is there twice or does not belong"
    else:
        keys = zip(columns["puzzle"], _puzzle_keys(path), strict=True)
        strangers = sum(puzzles[puzzle] != key for puzzle, key in keys)
        if strangers:
            yield f"{strangers} rows hold another puzzle than the {split} split has at their index"


def check_steps(context: AuditContext) -> Iterator[Finding]:
    """Run logs have one row per step, from 1 on without a gap, as many as the configuration asks for."""
    for path in _artifacts(context):
        if kind_of(path) not in ("sft_metrics", "rl_metrics"):
            continue
        steps = _columns(context.root / path, "step")["step"]
        wanted = _wanted_steps(path, context.config)
        if steps != list(range(1, len(steps) + 1)):
            yield context.invalid(path, "its steps are not 1, 2, 3 and so on, each once")
        elif wanted is not None and len(steps) != wanted:
            yield context.invalid(path, f"{len(steps)} steps; the configuration asks for {wanted}")


def _wanted_steps(path: str, config: Mapping[str, Any]) -> int | None:
    if path.startswith("rl/"):
        return max(_setting(config, "evaluation", "steps") or [], default=None)
    steps: int | None = _setting(config, path.partition("/")[0], "steps")
    return steps


BUILT_IN: tuple[AuditCheck, ...] = (check_splits, check_evaluations, check_steps)
"""Run after `check_formats`, on the files in which that found nothing wrong."""


def run_check(check: AuditCheck, context: AuditContext) -> list[Finding]:
    """The findings of a check; one that fails is itself a finding: what it read may be wrong in any way."""
    findings: list[Finding] = []
    try:
        findings.extend(check(context))
    except Exception as error:
        name = getattr(check, "__name__", type(check).__name__)
        message = (str(error).splitlines() or [""])[0]
        detail = f"{name} could not look at it ({type(error).__name__}: {message})"
        findings.append(Finding(".", "invalid", detail, context.snakemake))
    return findings


# -- reading -------------------------------------------------------------------------------------------------


def _artifacts(context: AuditContext) -> list[str]:
    """The readable files that manifests account for."""
    paths = {path for manifest in context.manifests.values() for path in manifest.outputs}
    return sorted(path for path in paths if context.readable(path))


def _columns(path: Path, *names: str) -> dict[str, list[Any]]:
    import pyarrow.parquet as pq

    columns: dict[str, list[Any]] = pq.ParquetFile(path).read(columns=list(names)).to_pydict()
    return columns


def _puzzle_keys(path: Path) -> list[PuzzleKey]:
    """Identity of the puzzle of each row: its sorted numbers and its target."""
    columns = _columns(path, "nums", "target")
    return [(tuple(sorted(nums)), target) for nums, target in zip(columns["nums"], columns["target"], strict=True)]


def _setting(config: Mapping[str, Any], *keys: str) -> Any:
    """A value of the configuration; None where it has none."""
    found: Any = config
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found
