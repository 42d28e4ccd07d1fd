"""The stages of the workflow and the modules each one runs: what its code digest covers.

Rules put the digest into `params`, so that editing a module reruns the stages that run it; manifests record it.
"""

from __future__ import annotations

from stepcredit.provenance.digest import code_digest

PRIME_RL = tuple(
    f"training.prime_rl.{name}" for name in ("launcher", "orchestrator", "algorithm", "taskset", "renderer")
)
"""What runs in prime-rl's own environment."""

MODULES: dict[str, tuple[str, ...]] = {
    "ingest": ("data.sources",),
    "clean": ("data.cleaning",),
    "split": ("data.splits",),
    "import-smollm2": ("modeling.gguf",),
    "train-sft": ("training.sft", "modeling.model"),
    "train-rl": ("training.rl",),
    "train-sft-prime": ("training.prime_rl.run",),
    "train-rl-prime": ("training.prime_rl.run", *PRIME_RL),
    "select-learning-rate": ("training.learning_rate",),
    "evaluate": ("evaluation.sample", "sampling.vllm_engine"),
    "train-mismatch": ("studies.stability",),
    "measure-drift": ("studies.model_drift",),
    "measure-mismatch-cost": ("studies.mismatch_cost",),
    "fingerprint-table": ("studies.fingerprint_table", "studies.playground"),
    "random-model": ("modeling.model",),
    "parity": ("studies.parity.audit", "studies.parity.offline", "studies.parity.served"),
    "signal": ("studies.signal", "sampling.vllm_engine", "scoring.tree"),
    "score-benchmark": ("studies.scoring.benchmark", "studies.scoring.workload"),
    "score-benchmark-large": ("studies.scoring.benchmark", "studies.scoring.workload"),
    "time-scoring-steps": ("studies.scoring.steps",),
    "tables": ("reporting.tables",),
    "claims": ("reporting.claims",),
    "figures": ("reporting.figures",),
    "report": ("reporting.report",),
    "model-cards": ("reporting.model_cards",),
}
DATA: dict[str, tuple[str, ...]] = {
    "train-sft-prime": ("training/prime_rl/keys.json",),
    "train-rl-prime": ("training/prime_rl/keys.json",),
    "report": ("reporting/templates",),
    "model-cards": ("reporting/model_card.md.j2",),
    "fingerprint-table": ("studies/playground.html.j2",),
}


def stage_digest(stage: str, *modules: str) -> str:
    """Digest of the code of a stage, and of further modules that one of its jobs runs."""
    return code_digest(*MODULES[stage], *modules, data=DATA.get(stage, ()))
