"""Each final checkpoint as a directory to hand on: its files, and a model card with what made it and how good it is.

What a card says of training comes from the manifest of that training, what of quality from the held-out samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from stepcredit.memory import parameters_in
from stepcredit.provenance.files import atomic_path
from stepcredit.provenance.manifest import MANIFEST_NAME, Manifest, read_manifest
from stepcredit.reporting.labels import metric_label, metric_unit
from stepcredit.reporting.layout import RunLayout
from stepcredit.reporting.measures import Measure, measures
from stepcredit.reporting.numbers import bounds, number
from stepcredit.reporting.raw import read_evaluation
from stepcredit.reporting.settings import TablesSettings
from stepcredit.training.checkpoint import link_tree

TEMPLATE = "model_card.md.j2"
CARD = "README.md"


@dataclass(frozen=True)
class Checkpoint:
    """A model to hand on.

    Attributes:
        name: of its directory.
        model: the Hugging Face directory that training wrote.
        manifest: of its training.
        evaluation: its held-out samples.
        arm: None for the SFT checkpoint.
    """

    name: str
    model: Path
    manifest: Path
    evaluation: Path
    arm: str | None = None


def checkpoints(results: Path, settings: TablesSettings) -> list[Checkpoint]:
    """The SFT checkpoint, and the last one of each arm and seed."""
    run = RunLayout(results)
    sft = results / "sft"
    found = [Checkpoint("sft", sft / "model", sft / MANIFEST_NAME, run.sft_evaluation)]
    for arm in settings.arms:
        last = settings.steps_of(arm)[-1]
        for seed in settings.seeds_of(arm) if last > 0 else ():
            directory = run.rl(arm, seed, "metrics").parent
            model = directory / "checkpoints" / f"step{last}"
            evaluation = run.evaluation(arm, seed, last)
            found.append(Checkpoint(f"{arm}-seed{seed}", model, directory / MANIFEST_NAME, evaluation, arm))
    return found


def write_models(results: Path, settings: TablesSettings, out_dir: Path) -> list[Path]:
    """Write a directory for each checkpoint below `out_dir`: hard links to its files, and its card.

    Returns:
        The directories.

    Raises:
        UserError: the held-out samples, or the manifest of a training, are missing.
    """
    found = checkpoints(results, settings)
    start = _measured(found[0], settings)
    data = read_manifest(results / "data" / f"raw.{MANIFEST_NAME}").settings
    for checkpoint in found:
        text = _card(checkpoint, settings, start, data, read_manifest(found[0].manifest).settings)
        link_tree(checkpoint.model, out_dir / checkpoint.name)
        with atomic_path(out_dir / checkpoint.name / CARD) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return [out_dir / checkpoint.name for checkpoint in found]


def _card(
    checkpoint: Checkpoint,
    settings: TablesSettings,
    start: dict[str, Measure],
    data: dict[str, Any],
    sft: dict[str, Any],
) -> str:
    made = read_manifest(checkpoint.manifest)
    measured = _measured(checkpoint, settings)
    pretrained = sft["model"]["pretrained"]
    arm = settings.arms[checkpoint.arm] if checkpoint.arm else None
    environment = Environment(
        loader=PackageLoader("stepcredit", "reporting"), trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    return environment.get_template(TEMPLATE).render(
        name=checkpoint.name,
        arm=checkpoint.arm,
        label=arm.label if arm else "SFT checkpoint",
        question=arm.question if arm else None,
        pretrained=pretrained,
        facts=list(_facts(made, data, sft, parameters_in(checkpoint.model))),
        metrics=list(_metrics(measured, start, settings, differs=arm is not None)),
        pass_at_1=round(measured["pass@1"].interval(settings.bootstrap).mean, 4),
        evaluation=settings.evaluation,
        confidence=f"{100 * settings.statistics.confidence:g} %",
        puzzles=measured["pass@1"].numerator.shape[1],
        commit=made.volatile.commit,
        code=made.code.digest,
        versions=made.versions,
    )


def _measured(checkpoint: Checkpoint, settings: TablesSettings) -> dict[str, Measure]:
    evaluation = read_evaluation(checkpoint.evaluation, settings.evaluation.samples)
    return measures([evaluation], settings.evaluation.pass_k)


def _metrics(
    measured: dict[str, Measure], start: dict[str, Measure], settings: TablesSettings, differs: bool
) -> Iterator[tuple[str, str, str]]:
    """(label, value with its interval, difference to the SFT checkpoint with its own)."""
    for name, measure in measured.items():
        unit = metric_unit(name)
        change = "token difference" if unit == "tokens" else "difference"
        interval = measure.interval(settings.bootstrap)
        value = f"{number(interval.mean, unit, suffix=False)} {bounds(interval, unit)}"
        difference = ""
        if differs:
            paired = measure.minus(start[name], settings.bootstrap)
            difference = f"{number(paired.mean, change, suffix=False)} {bounds(paired, change)}"
        yield metric_label(name), value, difference


def _facts(made: Manifest, data: dict[str, Any], sft: dict[str, Any], parameters: int) -> Iterator[tuple[str, str]]:
    yield "parameters", f"{parameters:,}"
    yield "data", _data(data)
    yield "start", sft["model"]["pretrained"] or "random weights, trained from scratch"
    yield "SFT", f"{sft['sft']['steps']} steps of {sft['sft']['batch_size']} demonstrations, seed {sft['sft']['seed']}"
    if "arm" not in made.settings:
        return
    arm, rl = made.settings["arm"], made.settings["rl"]
    groups = f"{rl['prompts_per_step']} groups of {rl['rollouts_per_prompt']}"
    yield "RL", f"{max(made.settings['steps'])} steps of {groups}, temperature {rl['temperature']}"
    yield "loss, learning rate, seed", f"`{rl['loss']['name']}`, {made.settings['learning_rate']:g}, {made.seed}"
    yield "credit", f"`{arm['credit']}`"
    if arm["scorer"]:
        yield "scorer", f"{arm['scorer']['model']} (computed by `{arm['scorer']['kind']}`)"
    if arm["shaping"]:
        keys = ("beta", "gamma", "temperature", "clip", "max_paragraph_len")
        yield "shaping", ", ".join(f"{key} {arm['shaping'][key]}" for key in keys)


def _data(data: dict[str, Any]) -> str:
    source = data["source"]
    if source == "hub":
        return f"{data['hub']['dataset']}, split {data['hub']['split']}, cleaned"
    if source == "file":
        return f"{Path(data['file']['path']).name}, cleaned"
    made = data["synthetic"]
    return (
        f"{made['demonstrations']:,} generated demonstrations, cleaned: puzzles of {made['numbers']} numbers up to"
        f" {made['largest_number']}, targets {made['smallest_target']} to {made['largest_target']}"
    )
