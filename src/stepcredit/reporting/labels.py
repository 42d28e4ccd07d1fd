"""What metrics are called in the report, and in which unit they are shown."""

from __future__ import annotations

LABELS = {
    "well_formed": "well formed, %",
    "finished": "ended before the cap, %",
    "accuracy_of_finished": "right among those that ended, %",
    "mixed_groups": "puzzles with right and wrong samples, %",
    "length": "length, tokens",
    "shaped_rollouts": "rollouts shaped, share",
    "shaping_mean": "shaping, mean",
    "shaping_abs": "shaping, mean size",
    "potential_first": "potential before the reasoning, nats",
    "potential_last": "potential after it, nats",
    "potential_clipped": "potentials clipped, share",
}
SCORED_MODELS = {"run": "the run's model", "large": "the larger shape"}
SPLITS = {"demonstrations": "demonstrations", "rl": "RL", "validation": "validation", "heldout": "held-out"}


def metric_label(metric: str) -> str:
    return LABELS.get(metric, f"{metric}, %" if metric.startswith("pass@") else metric.replace("_", " "))


def metric_unit(metric: str) -> str:
    """A key of `numbers.UNITS`."""
    return "tokens" if metric == "length" else "fraction"
