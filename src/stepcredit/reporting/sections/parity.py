"""Parity of sampler and trainer."""

from __future__ import annotations

from stepcredit.losses.agreement import RULE, flagged
from stepcredit.reporting.blocks import Block, Cell, Details, Figures, Heading, Note, Prose, Section, Table
from stepcredit.reporting.csvfiles import Row
from stepcredit.reporting.figures.parity import audited
from stepcredit.reporting.numbers import MINUS, count, joined
from stepcredit.reporting.run import Run

QUESTION = "Do sampler and trainer agree on the probability of the same tokens?"
MODELS = {"sft": "after SFT", "rl": "after RL", "random": "random weights"}
RUNS = {"right": "right settings", "raw": "raw log-probs", "stale": "stale cache"}


def section(run: Run) -> Section:
    rows = audited(run.tables)
    blocks: list[Block] = [
        Figures(
            [run.panel("parity")], "Each setting of the audit: how far the log-probs of the same tokens are apart."
        ),
        _settings(run, rows),
        Details("The rule of the verdict", [Prose(RULE)]),
    ]
    if len(run.config.parity.models) > 1:
        blocks += [Heading("On other models"), _models(run)]
    blocks += [Heading("In training"), Prose(_training_said(run)), _training(run)]
    blocks += [
        Heading("What the fault does to training"),
        Prose(_ablation_said(run)),
        Figures([run.panel("parity_ablation_kl"), run.panel("parity_ablation_reward")]),
        _ablation(run),
        Note(
            "One seed and few steps: the figures show what the trainer sees, and cannot tell a difference in reward"
            " from noise. Updates land in flight in all of these runs, so that the right one, too, trains on tokens"
            " that were sampled one step before."
        ),
    ]
    return Section("parity", "Parity", QUESTION, _answer(rows), blocks)


def _answer(rows: list[Row]) -> str:
    base = next((row for row in rows if row["setting"] == "processed_t1.0"), None)
    bad = [row for row in rows if row["known"] == "bad" and row["verdict"] != "refused"]
    good = [row for row in rows if row["known"] == "good"]
    said = ""
    if base and base["worst"] is not None:
        said = (
            f"In float32 with processed log-probs they agree to {_small(base['worst'])} nats at worst over"
            f" {count(base['tokens'])} tokens. "
        )
    caught = sum(flagged(str(row["verdict"])) for row in bad)
    wrong = sum(flagged(str(row["verdict"])) for row in good)
    return f"{said}The rule flags {caught} of {len(bad)} settings known to be bad and {wrong} of {len(good)} good ones."


def _settings(run: Run, rows: list[Row]) -> Table:
    cells = [
        [
            Cell(str(row["area"])),
            Cell(str(row["what"])),
            _number(row["mean_abs"]),
            _number(row["worst"]),
            Cell(f"{row['mean_ratio']:.4f}" if row["mean_ratio"] is not None else "–", numeric=True),
            _number(row["kl"]),
            _share(row["clipped"]),
            _share(row["far"]),
            Cell(f"{row['effective_sample_size']:.3f}" if row["mean_ratio"] is not None else "–", numeric=True),
            Cell(f"{row['lag']:.2f}" if row["lag"] is not None else "–", numeric=True),
            Cell(str(row["verdict"])),
            Cell(str(row["note"] or "")),
        ]
        for row in rows
    ]
    header = ["area", "setting", "mean |d|", "worst", "mean ratio", "KL", "clipped, %", "> 0.1, %", "ESS", "lag, steps"]
    caption = (
        "|d|: |log p − log q| of a sampled token, nats. Lag: steps by which the weights behind a token are older than"
        " the trainer's. Rows of an update in flight are in parity_served.csv."
    )
    return run.table("parity", caption, [*header, "verdict", "note"], cells)


def _models(run: Run) -> Table:
    models = run.config.parity.models
    verdicts: dict[str, dict[str, Row]] = {}
    for row in run.tables.rows("parity_models"):
        verdicts.setdefault(str(row["setting"]), {})[str(row["model"])] = row
    cells = [
        [Cell(setting), Cell(str(found[next(iter(found))]["known"]))]
        + [Cell(_verdict(found.get(model)), numeric=False) for model in models]
        for setting, found in verdicts.items()
    ]
    header = ["setting", "known", *(MODELS[model] for model in models)]
    return run.table("parity_models", "Verdict and mean |d| (nats) of each setting on each model.", header, cells)


def _verdict(row: Row | None) -> str:
    if row is None or row["mean_abs"] is None:
        return "–" if row is None else str(row["verdict"])
    return f"{row['verdict']} ({_small(row['mean_abs'])})"


def _training_said(run: Run) -> str:
    rows = run.tables.rows("parity_training")
    outside = [row for row in rows if row["outside"]]
    steps = sum(int(row["steps"]) for row in rows)
    if not outside:
        return f"All {count(steps)} training steps of the arms are inside the noise band."
    where = joined([f"{run.tables.label(row['arm'])} seed {row['seed']} ({row['outside']})" for row in outside])
    warning = "Their sampler did not sample what was trained."
    return f"Steps outside the noise band, of {count(steps)} in all: {where}. {warning}"


def _training(run: Run) -> Table:
    arms: dict[str, list[Row]] = {}
    for row in run.tables.rows("parity_training"):
        arms.setdefault(run.tables.label(row["arm"]), []).append(row)
    cells = [
        [
            Cell(label),
            Cell(f"{sum(row['outside'] for row in rows)} of {sum(row['steps'] for row in rows)}", numeric=True),
            *(_number(_largest(rows, name)) for name in ("mean_log_ratio", "max_log_ratio")),
            *(_number(_largest(rows, name)) for name in ("ratio_distance", "mismatch_kl")),
            *(_share(_largest(rows, name)) for name in ("clipped", "far")),
            _number(_mean(rows, "entropy_gap")),
            Cell(f"{_largest(rows, 'lag') or 0:.2f}", numeric=True),
        ]
        for label, rows in arms.items()
    ]
    header = ["arm", "outside", "mean |d|", "worst", "|ratio − 1|", "KL", "clipped, %", "> 0.1, %"]
    caption = (
        "Steps outside the noise band, the worst step over all seeds, and the mean entropy gap (the sampler's −log q"
        " minus the trainer's entropy, nats)."
    )
    return run.table("parity_training", caption, [*header, "entropy gap", "lag, steps"], cells)


def _largest(rows: list[Row], metric: str) -> float | None:
    return max((float(row[metric]) for row in rows if row[metric] is not None), default=None)


def _runs(run: Run) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in run.tables.rows("parity_ablation"):
        found.setdefault(str(row["run"]), []).append(row)
    return found


def _mean(rows: list[Row], metric: str) -> float | None:
    values = [float(row[metric]) for row in rows if row[metric] is not None]
    return sum(values) / len(values) if values else None


def _ablation_said(run: Run) -> str:
    runs = _runs(run)
    first, *others = runs
    said = [
        f"{RUNS.get(name, name)}: KL {_small(_mean(runs[name], 'mismatch_kl'))}, clipped"
        f" {_percent(_mean(runs[name], 'clipped'))} %"
        for name in (first, *others)
    ]
    ablation = run.config.parity.ablation
    head = f"{ablation.steps} steps of the baseline at temperature {ablation.temperature:g}, mean over steps."
    return f"{head} {'; '.join(said)}."


def _ablation(run: Run) -> Table:
    cells = [
        [
            Cell(RUNS.get(name, name)),
            Cell(f"{_mean(rows, 'reward') or 0:.3f}", numeric=True),
            Cell(f"{_mean(rows[-3:], 'reward') or 0:.3f}", numeric=True),
            Cell(f"{_mean(rows, 'mean_ratio') or 0:.4f}", numeric=True),
            _number(_mean(rows, "mismatch_kl")),
            _share(_mean(rows, "clipped")),
            _share(_mean(rows, "masked")),
            Cell(f"{_mean(rows, 'effective_sample_size') or 0:.4f}", numeric=True),
            Cell(f"{_mean(rows, 'entropy') or 0:.3f}", numeric=True),
        ]
        for name, rows in _runs(run).items()
    ]
    header = [
        "sampler",
        "reward",
        "last 3 steps",
        "mean ratio",
        "KL",
        "clipped, %",
        "masked, %",
        "ESS",
        "entropy, nats",
    ]
    return run.table("parity_ablation", "Means over the steps of each run.", header, cells)


def _small(value: float | None) -> str:
    """Two significant digits: what is measured here spans nine orders of magnitude."""
    if value is None:
        return "–"
    return (f"{value:.1e}" if abs(value) < 0.01 else f"{value:.2g}").replace("-", MINUS)


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value * 100:.2f}"


def _number(value: float | None) -> Cell:
    return Cell(_small(value), numeric=True)


def _share(value: float | None) -> Cell:
    return Cell(_percent(value), numeric=True)
