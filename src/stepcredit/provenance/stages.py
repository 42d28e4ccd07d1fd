"""The stages of the workflow and the modules each one runs: what its code digest covers.

Rules put the digest into `params`, so that editing a module reruns the stages that run it; manifests record it.
"""

from __future__ import annotations

from stepcredit.provenance.digest import code_digest

MODULES: dict[str, tuple[str, ...]] = {
    "ingest": ("data.sources",),
    "clean": ("data.cleaning",),
    "split": ("data.splits",),
    "train-sft": ("training.sft", "modeling.model"),
    "train-rl": ("training.rl",),
    "select-learning-rate": ("training.learning_rate",),
    "evaluate": ("evaluation.sample", "sampling.vllm_engine"),
    "score-benchmark": ("studies.scoring.benchmark", "studies.scoring.workload"),
    "score-benchmark-large": ("studies.scoring.benchmark", "studies.scoring.workload"),
    "time-scoring-steps": ("studies.scoring.steps",),
    "tables": ("reporting.tables",),
    "claims": ("reporting.claims",),
    "figures": ("reporting.figures",),
    "report": ("reporting.report",),
}
DATA: dict[str, tuple[str, ...]] = {"report": ("reporting/templates",)}


def stage_digest(stage: str) -> str:
    """Digest of the code of a stage."""
    return code_digest(*MODULES[stage], data=DATA.get(stage, ()))
