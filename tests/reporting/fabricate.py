"""A tiny made-up run: the files of a run with seeded random numbers in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from fabricate_stability import STABILITY, fabricate_stability

from stepcredit.config import Config
from stepcredit.reporting.claims import write_claims
from stepcredit.reporting.figures import write_figures
from stepcredit.reporting.report import write_report
from stepcredit.reporting.settings import TablesSettings
from stepcredit.reporting.tables import write_tables
from stepcredit.studies.parity.settings import SETTINGS

PUBLISHED = Path(__file__).parents[2] / "config" / "published.yaml"

HOSTILE = "Try 3 + 4 = 7 .\n\n<script>alert('x')</script> & \"quoted\"</reasoning>\n<solution>3 + 4</solution>"

SHAPED: dict[str, Any] = {"credit": "contrastive_potential", "shaping": {}}
CONFIG: dict[str, Any] = {
    "arms": {
        "baseline": {"label": "Baseline", "credit": "group_advantage"},
        "frozen": SHAPED | {"label": "Frozen scorer", "scorer": {"model": "frozen"}},
        "moving": SHAPED | {"label": "Moving scorer", "scorer": {"model": "moving"}},
        "no_guard": {
            "label": "No guard",
            "credit": "contrastive_potential",
            "scorer": {"model": "frozen"},
            "shaping": {"max_paragraph_len": None},
            "question": "What does the guard prevent?",
            "seeds": 1,
        },
    },
    "evaluation": {"steps": [0, 10, 20, 30, 40]},
    "statistics": {"resamples": 300},
    "stability": STABILITY,
}
STEPS = 40
PUZZLES = 60
LIFT = {"baseline": 0.12, "frozen": 0.17, "moving": 0.13}


def fabricate(root: Path, overrides: dict[str, Any] | None = None) -> Config:
    """Write the raw files of a run under `root` and return its configuration."""
    config = Config.model_validate(CONFIG | (overrides or {}))
    generator = np.random.Generator(np.random.PCG64(11))
    _data(root)
    _sft(root, generator)
    difficulty = generator.beta(1.6, 1.8, PUZZLES)
    _write(root / "eval/sft/step0.parquet", samples(difficulty, 0, generator, config.evaluation.samples))
    for rate, lift in zip(config.sweep.learning_rates, [0.03, 0.1, 0.07, -0.3], strict=False):
        folder = root / f"sweep/lr{rate}"
        _write(folder / "validation.parquet", samples(difficulty, lift, generator, config.sweep.samples))
        _write(folder / "metrics.parquet", metrics(generator, 20, shaped=False, lift=lift))
        _write(folder / "timings.parquet", timings(generator, 20, shaped=False))
    _json(root / "sweep/best.json", {"learning_rate": 1.5e-4, "pass@1": 0.55})
    _parity(root, config, generator)
    for arm, settings in config.arms.items():
        shaped = settings.scorer is not None
        for seed in config.seeds_of(arm):
            folder = root / f"rl/{arm}/seed{seed}"
            _write(folder / "metrics.parquet", metrics(generator, STEPS, shaped, LIFT.get(arm, 0.1)))
            _write(folder / "timings.parquet", timings(generator, STEPS, shaped))
            _write(folder / "rollouts.parquet", rollouts(generator, shaped))
            _json(folder / "manifest.json", manifest(f"rl/{arm}/seed{seed}", seed))
            for step in config.steps_of(arm):
                lift = LIFT.get(arm, 0.1) * (1 - np.exp(-step / 12)) + generator.normal(0, 0.008)
                frame = samples(difficulty, lift, generator, config.evaluation.samples)
                _write(root / f"eval/{arm}/seed{seed}/step{step}.parquet", frame)
    fabricate_stability(root, config, lambda lift, count: samples(difficulty, lift, generator, count))
    _write(root / "signal/sft/step0.parquet", boundaries(generator))
    for arm in config.signal.arms:
        last = config.evaluation.steps[-1]
        _write(root / f"signal/{arm}/seed{config.seeds[0]}/step{last}.parquet", boundaries(generator))
    _scoring(root)
    return config


def build(root: Path, config: Config) -> None:
    """Tables, claims, figures and report of a made-up run."""
    write_tables(root, TablesSettings.from_config(config), root / "tables")
    write_claims(root / "tables", PUBLISHED, root / "claims.json")
    write_figures(root / "tables", PUBLISHED, root / "figures")
    write_config(root / "config.yaml", config)
    write_report(config, root, root / "report.html")


def write_config(path: Path, config: Config) -> Path:
    path.write_text(yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False))
    return path


def samples(difficulty: Any, lift: float, generator: np.random.Generator, count: int) -> pd.DataFrame:
    """Held-out samples of one checkpoint."""
    rows = []
    for puzzle, chance in enumerate(difficulty):
        for sample in range(count):
            finished = bool(generator.random() < 0.98)
            right = finished and bool(generator.random() < min(1, max(0, chance + lift)))
            rows.append(
                {
                    "puzzle": puzzle,
                    "nums": [3, 4, 5],
                    "target": 12 + puzzle,
                    "sample": sample,
                    "completion": HOSTILE,
                    "answer": "3 + 4" if finished else None,
                    "reward": float(right),
                    "reason": "correct" if right else "wrong value" if finished else "truncated",
                    "well_formed": finished,
                    "finished": finished,
                    "tokens": int(generator.integers(40, 200)),
                }
            )
    return pd.DataFrame(rows)


def metrics(generator: np.random.Generator, steps: int, shaped: bool, lift: float) -> pd.DataFrame:
    """One row a step, as the RL loop logs it."""
    step = np.arange(1, steps + 1)
    noise = generator.normal(0, 1, (12, steps))
    rise = 1 - np.exp(-step / 12)
    frame = pd.DataFrame(
        {
            "step": step,
            "reward": 0.46 + (lift + 0.08) * rise + 0.03 * noise[0],
            "well_formed": np.clip(0.995 - 0.03 * rise * shaped + 0.006 * noise[1], 0, 1),
            "finished": np.clip(0.997 - 0.03 * rise * shaped + 0.003 * noise[2], 0, 1),
            "mixed_groups": 0.85 + 0.03 * noise[3],
            "length": 104 + (45 if shaped else 22) * rise + 4 * noise[4],
            "length_max": 300 + 10 * noise[5],
            "at_cap": 0.003,
            "paragraphs": 5.0,
            "paragraph_length": 20 + 2 * noise[4],
            "entropy": 0.55 - 0.2 * rise + 0.01 * noise[6],
            "mismatch_kl": 2e-7,
            **dict.fromkeys(("mean_ratio", "effective_sample_size"), 1.0),
            **dict.fromkeys(("clipped", "masked", "far", "impossible", "lag"), 0.0),
            "mean_log_ratio": 2e-7,
            "max_log_ratio": 2e-5,
            "entropy_gap": 0.002 * noise[8],
            "outside_band": False,
            "grad_norm": 0.4 + 0.05 * noise[7],
            "loss": 0.01 * noise[8],
            "learning_rate": 1.5e-4,
        }
    )
    asked = 1000 + np.round(40 * noise[9])
    for name, values in {
        "shaped_rollouts": 0.84 + 0.03 * noise[10],
        "shaping_mean": 0.01 * noise[10],
        "shaping_abs": 0.12 + 0.01 * noise[11],
        "potential_first": 0.4 + 0.1 * noise[10],
        "potential_last": 1.4 + 0.1 * noise[11],
        "potential_clipped": 0.02,
        "scorings": asked,
        "scorings_unique": np.round(asked * 0.87),
        "tokens_scored": asked * 9,
    }.items():
        frame[name] = values if shaped else None
    return frame


def timings(generator: np.random.Generator, steps: int, shaped: bool) -> pd.DataFrame:
    """Seconds of each phase of each step, long."""
    phases = {"generate": 1.7, "train": 1.1, "push": 0.02} | ({"score": 0.6} if shaped else {})
    return pd.DataFrame(
        [
            {"step": step, "phase": phase, "seconds": seconds * scale, "cpu_seconds": seconds * 0.9}
            for step in range(1, steps + 1)
            for phase, seconds in phases.items()
            for scale in [float(generator.uniform(0.9, 1.2))]
        ]
    )


def rollouts(generator: np.random.Generator, shaped: bool) -> pd.DataFrame:
    """Rollouts of two steps, the text of each hostile to HTML."""
    return pd.DataFrame(
        [
            {
                "step": step,
                "group": 0,
                "sample": sample,
                "nums": [3, 4, 5],
                "target": 12,
                "completion": HOSTILE,
                "answer": "3 + 4",
                "reward": float(sample % 2),
                "well_formed": True,
                "finished": True,
                "tokens": 20,
                "advantage": sample % 2 - 0.5,
                "paragraphs": [
                    {
                        "text": "Try 3 + 4 = 7 .",
                        "tokens": 8,
                        "potential_before": float(generator.normal()) if shaped else None,
                        "potential_after": float(generator.normal()) if shaped else None,
                        "shaping": float(generator.normal()) if shaped else None,
                    }
                ],
                "likelihoods": [[-2.0, -1.0], [-0.5, -1.5]] if shaped else None,
                "bank": [
                    {"answer": "3 + 4", "correct": True, "count": 1},
                    {"answer": "3 * <b>4</b>", "correct": False, "count": 2},
                ],
            }
            for step in (10, 40)
            for sample in range(4)
        ]
    )


def boundaries(generator: np.random.Generator) -> pd.DataFrame:
    """Boundaries of held-out rollouts, their success rates higher where the potential is."""
    rows = []
    for index in range(60):
        potential = float(generator.normal(0, 2))
        rate = 1 / (1 + np.exp(-potential))
        rows.append(
            {
                "puzzle": index // 4,
                "nums": [3, 4, 5],
                "target": 12,
                "sample": index % 2,
                "boundary": index % 4,
                "boundaries": 4,
                "prefix_tokens": 1 + 20 * (index % 4),
                "potential_frozen": potential,
                "potential_moving": potential + float(generator.normal(0, 1)),
                "continuations": 20,
                "successes": int(generator.binomial(20, rate)),
                "finished": 20,
                "answers_right": int(generator.binomial(20, rate / 2)),
                "tokens": 900,
            }
        )
    return pd.DataFrame(rows)


def manifest(stage: str, seed: int) -> dict[str, Any]:
    return {
        "stage": stage,
        "inputs": {"sft/model/model.safetensors": "a" * 64},
        "outputs": {f"{stage}/metrics.parquet": "b" * 64},
        "settings": {"arm": stage},
        "code": {"modules": ["training.rl"], "data": [], "digest": "c" * 64},
        "versions": {"python": "3.11.9", "torch": "2.7.0", "stepcredit": "0.1.0"},
        "seed": seed,
        "volatile": {
            "host": "somewhere",
            "machine": {"cpu": "a processor", "cores": 2, "memory_mib": 4096, "gpu": None},
            "commit": {"head": "d" * 40, "dirty": True},
            "started": "2026-01-01T00:00:00Z",
            "seconds": 128.5,
        },
    }


def _data(root: Path) -> None:
    stages = [
        ("read", 40000),
        ("no response", 0),
        ("no solution", 1898),
        ("wrong value", 3110),
        ("number missing", 1002),
        ("kept", 33990),
    ]
    (root / "data").mkdir(parents=True, exist_ok=True)
    pd.DataFrame(stages, columns=["stage", "rows"]).to_csv(root / "data/funnel.csv", index=False)
    for name, rows in {"demonstrations": 90, "rl": 50, "validation": 20, "heldout": PUZZLES}.items():
        frame = pd.DataFrame({"nums": [[3, 4, 5]] * rows, "target": range(rows)})
        _write(root / f"data/splits/{name}.parquet", frame)


def _sft(root: Path, generator: np.random.Generator) -> None:
    step = np.arange(1, 301)
    loss = 0.55 + 3.5 * np.exp(-step / 25) + generator.normal(0, 0.02, 300)
    columns = {"step": step, "loss": loss, "learning_rate": 5e-3, "grad_norm": 0.3, "tokens": 3000}
    _write(root / "sft/metrics.parquet", pd.DataFrame(columns))
    _write(root / "sft/timings.parquet", pd.DataFrame({"step": step, "seconds": 0.2, "cpu_seconds": 0.18}))


TIMES = {"naive": 24.0, "batched": 5.0, "cached": 0.9, "engine": 0.7, "tree": 0.3}
"""Seconds of each scorer on 400 made-up scorings, 350 of them different."""
TOKENS = {"naive": 60_000, "batched": 50_000, "cached": 9_000, "engine": 7_000, "tree": 5_000}


def _scoring(root: Path) -> None:
    """The files of a scoring study in which the engine takes 0.1 ms a token and nothing a scoring."""
    for model, slower in (("run", 1.0), ("large", 3.0)):
        plain = np.linspace(-9, -1, 400)
        rows = [_measured(model, "plain", 0, 2.0 * slower, 50_000, plain)]
        for repetition, stretch in enumerate((1.0, 1.2, 0.9)):
            for scorer, seconds in TIMES.items():
                scores = plain + (repetition + 1) * 1e-6 * (scorer != "tree")
                rows.append(_measured(model, scorer, repetition, slower * stretch * seconds, TOKENS[scorer], scores))
        _write(root / f"scoring/{model}.parquet", pd.DataFrame(rows))
    _write(root / "scoring/steps.parquet", pd.DataFrame(_scoring_steps()))


def _measured(model: str, scorer: str, repetition: int, seconds: float, tokens: int, scores: Any) -> dict[str, Any]:
    requests = {"naive": 400, "batched": 1, "cached": 1}.get(scorer, 0)
    return {
        "model": model,
        "scorer": scorer,
        "repetition": repetition,
        "wall_s": seconds,
        "scorings": 400,
        "scorings_unique": 350,
        "requests": requests,
        "bytes": 50_000 * requests if scorer == "naive" else 10_000 * requests,
        "tokens_computed": tokens,
        "tokens_minimum": 5_000,
        "tokens_minimum_blocks": 9_000,
        "tokens_cached": 50_000 - tokens if scorer in ("cached", "engine") else 0,
        "scores": scores.tolist(),
    }


def _scoring_steps() -> list[dict[str, Any]]:
    """Three steps of 100 scorings each, of a quarter of the run's prompts; a second more in the second step."""
    variants = [("none", "none", 0.0)]
    variants += [("frozen", scorer, TIMES[scorer] / 4) for scorer in TIMES if scorer != "engine"]
    variants += [("moving", scorer, TIMES[scorer] / 4 + 0.1) for scorer in TIMES]
    return [
        {
            "model": model,
            "scorer": scorer,
            "step": step,
            "phase": phase,
            "seconds": seconds + (step == 2) * (phase == "generate"),
            "cpu_seconds": seconds,
            "scorings": None if model == "none" else 100,
            "prompts": 4,
            "run_prompts": 16,
        }
        for model, scorer, score in variants
        for step in (1, 2, 3)
        for phase, seconds in {"generate": 0.5, "score": score, "train": 0.4, "push": 0.01}.items()
    ]


def _write(path: Path, frame: pd.DataFrame) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.to_parquet(path, index=False)


def _parity(root: Path, config: Config, generator: np.random.Generator) -> None:
    """Audits whose verdicts are as known, and runs of the ablation."""
    for model in config.parity.models:
        rows = []
        for setting in SETTINGS.values():
            mean = {"good": 3e-7, "lossy": 0.02, "bad": 0.05}[setting.known]
            verdict = {"good": "exact", "lossy": "numerical noise", "bad": "biased"}[setting.known]
            ratio = 1.01 if setting.known == "bad" else 1.0
            numbers = {
                "tokens": 4000,
                "mean_abs": mean,
                "mean_abs_error": mean / 100,
                "worst": mean * 40,
                "mean_ratio": ratio,
                "ratio_error": mean / 50,
                "ratio_distance": ratio - 1,
                "kl": mean**2 / 2,
                "clipped": 0.01 * (setting.known == "bad"),
                "effective_sample_size": 0.999,
                "entropy_gap": float(generator.normal(0, 0.01)),
                "far": 0.02 * (setting.known == "bad"),
                "impossible": 0.0,
                "lag": 0.0,
            }
            repaired = "exact" if setting.known == "bad" else None
            text = {"verdict": verdict, "after_repair": repaired, "note": ""}
            what = {"setting": setting.name, "area": setting.area, "what": setting.what, "known": setting.known}
            rows.append({**what, **numbers, **text})
        _write(root / f"parity/{model}.parquet", pd.DataFrame(rows))
    for run in config.parity.ablation.runs:
        frame = metrics(generator, config.parity.ablation.steps, shaped=False, lift=0.1)
        _write(root / f"parity/ablation/{run}/metrics.parquet", frame)


def _json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
