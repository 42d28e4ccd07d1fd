"""Figures of a run: one message each, as SVG, with an alt text that says the finding."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from stepcredit.provenance.files import atomic_path
from stepcredit.reporting.accessor import Tables
from stepcredit.reporting.claims.published import Published, read_published
from stepcredit.reporting.figures import arms, data, parity, scoring, signal, stability, timing, training
from stepcredit.reporting.figures.style import Drawn, save


@dataclass(frozen=True)
class Figure:
    """A figure of the report: the name of its file and the function that draws it."""

    name: str
    draw: Callable[[Tables, Published], Drawn]


FIGURES = (
    Figure("funnel", data.funnel),
    Figure("sft_loss", data.sft_loss),
    Figure("sweep", data.sweep),
    Figure("training_reward", training.reward),
    Figure("training_length", training.length),
    Figure("training_well_formed", training.well_formed),
    Figure("training_entropy", training.entropy),
    Figure("pass_at_1", arms.pass_at_1),
    Figure("pass_at_4", arms.pass_at_k),
    Figure("paired_pass_at_1", arms.paired_pass_at_1),
    Figure("paired_pass_at_4", arms.paired_pass_at_k),
    Figure("heldout_finished", arms.finished),
    Figure("heldout_length", arms.length),
    Figure("step_time", timing.step_time),
    Figure("stability_accuracy", stability.accuracy),
    Figure("stability_reward", stability.reward),
    Figure("stability_drift", stability.drift_by_step),
    Figure("drift", stability.drift),
    Figure("drift_head", stability.drift_by_head),
    Figure("fingerprint", stability.fingerprint),
    Figure("parity", parity.settings),
    Figure("parity_ablation_kl", parity.ablation_kl),
    Figure("parity_ablation_reward", parity.ablation_reward),
    Figure("signal_continuations", signal.continuations),
    Figure("signal_answers", signal.answers),
    Figure("paragraph_length", training.paragraph_length),
    Figure("guard_length", training.guard_length),
    Figure("at_cap", training.at_cap),
    Figure("guard_reward", training.guard_reward),
    Figure("cap_sensitivity", arms.cap_sensitivity),
    Figure("pass_at_1_time", arms.pass_at_1_by_time),
    Figure("scoring_wall", scoring.wall),
    Figure("scoring_steps", scoring.steps),
)


def write_figures(tables: Path, published: Path, out_dir: Path) -> None:
    """Write {name}.svg for each figure, and alt.json (name to alt text).

    Raises:
        UserError: a table or the published numbers cannot be read.
    """
    accessor, values = Tables(tables), read_published(published)
    alt: dict[str, str] = {}
    for figure in FIGURES:
        drawn = figure.draw(accessor, values)
        alt[figure.name] = drawn.alt
        save(drawn.figure, out_dir / f"{figure.name}.svg")
    with atomic_path(out_dir / "alt.json") as temporary:
        temporary.write_text(json.dumps(alt, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
