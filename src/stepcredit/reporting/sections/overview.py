"""What was run: puzzles, model, arms, seeds, time."""

from __future__ import annotations

from stepcredit.config import Config
from stepcredit.reporting.blocks import Block, Cell, Chain, Details, Facts, Note, Section
from stepcredit.reporting.csvfiles import Row
from stepcredit.reporting.labels import SPLITS
from stepcredit.reporting.numbers import count, duration, joined, rate
from stepcredit.reporting.run import Run


def section(run: Run) -> Section:
    config = run.config
    rows = run.tables.rows("cost")
    splits = {row["split"]: row["rows"] for row in run.tables.rows("splits")}
    wall, cpu = (sum(float(row[column]) for row in rows) for column in ("seconds", "cpu_seconds"))
    jobs = sum(row["jobs"] for row in rows)
    answer = (
        f"{_number(len(config.arms), 'arm')}, {_seeds(config)} each, compared on"
        f" {count(splits['heldout'])} held-out puzzles; {jobs} training jobs took {duration(wall)} of"
        f" loop time ({duration(cpu)} of processor time)."
    )
    blocks: list[Block] = [
        Chain(_stages(config)),
        Facts(_facts(run, splits)),
        Note(
            "The write-up trains Qwen3-0.6B on two GPUs; this is another model at another scale. A difference"
            " between our numbers and the published ones says nothing by itself: directions are compared."
        ),
        Details("Time of each stage", [_cost(run, rows)]),
    ]
    question = "What was trained, on what, and what did it take?"
    return Section("run", "What was run", question, answer, blocks)


def _seeds(config: Config) -> str:
    """`3 seeds`, `1 to 3 seeds`."""
    counts = {len(config.seeds_of(arm)) for arm in config.arms}
    if len(counts) == 1:
        return _number(counts.pop(), "seed")
    return f"{min(counts)} to {max(counts)} seeds"


def _stages(config: Config) -> list[tuple[str, str]]:
    return [
        ("clean", config.data.source),
        ("split", "4 parts"),
        ("SFT", f"{count(config.sft.steps)} steps"),
        ("sweep", f"{len(config.sweep.learning_rates)} rates"),
        ("RL", f"{_number(sum(len(config.seeds_of(arm)) for arm in config.arms), 'run')}"),
        ("evaluate", f"{len(config.evaluation.steps)} steps"),
        ("report", "this page"),
    ]


def _facts(run: Run, splits: dict[str, int]) -> list[tuple[str, str]]:
    config = run.config
    evaluation, rl = config.evaluation, config.rl
    labels = [arm.label for arm in config.arms.values()]
    best = next((row for row in run.tables.rows("sweep", metric="pass@1") if row["best"]), None)
    chosen = f"{rate(best['learning_rate'])}, the sweep's best on validation puzzles" if best else "not chosen"
    return [
        ("Puzzles", _puzzles(config)),
        ("Split", ", ".join(f"{count(rows)} {SPLITS.get(name, name)}" for name, rows in splits.items())),
        ("Model", _model(config)),
        ("Arms", joined(labels)),
        ("Seeds", ", ".join(map(str, config.seeds))),
        (
            "RL",
            f"{rl.prompts_per_step} prompts × {rl.rollouts_per_prompt} rollouts a step, at most"
            f" {rl.max_new_tokens} new tokens, temperature {rl.temperature:g}",
        ),
        ("Learning rate", chosen),
        (
            "Evaluation",
            f"{evaluation.samples} samples a puzzle at steps {', '.join(map(str, evaluation.steps))},"
            f" temperature {evaluation.temperature:g}, at most {evaluation.max_new_tokens} new tokens",
        ),
        (
            "Intervals",
            f"{100 * config.statistics.confidence:g} %, {count(config.statistics.resamples)} resamples"
            " of seeds and puzzles; arms are compared on the same puzzles",
        ),
    ]


def _puzzles(config: Config) -> str:
    data = config.data
    if data.source == "synthetic":
        made = data.synthetic
        return (
            f"{made.numbers} numbers from 1 to {made.largest_number}, targets {made.smallest_target} to"
            f" {made.largest_target}, generated"
        )
    return data.hub.dataset if data.source == "hub" else f"from the file {data.file.path}"


def _model(config: Config) -> str:
    model = config.model
    if model.pretrained:
        return f"pretrained: {model.pretrained}"
    return f"Qwen3 of {model.layers} layers, width {model.hidden_size}, from random weights"


def _number(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _cost(run: Run, rows: list[Row]) -> Block:
    cells = [
        [
            Cell(row["stage"]),
            Cell(str(row["jobs"]), numeric=True),
            Cell.value(row["seconds"] / 60, "tokens"),
            Cell.value(row["cpu_seconds"] / 60, "tokens"),
        ]
        for row in rows
    ]
    caption = "Time inside the training loops, all jobs of a stage together, without start-up and evaluation."
    return run.table("cost", caption, ["stage", "jobs", "wall clock, min", "processor, min"], cells)
