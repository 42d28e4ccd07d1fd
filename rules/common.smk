"""What the rules share: the validated configuration and the settings each stage reads."""

import os
import sys
from pathlib import Path

import yaml
from snakemake.exceptions import WorkflowError

from stepcredit import jobs
from stepcredit.config import ConfigError, validate_config
from stepcredit.provenance.files import atomic_path
from stepcredit.provenance.stages import stage_digest
from stepcredit.reporting.names import FIGURES, TABLES, TIMING_TABLES
from stepcredit.reporting.settings import TablesSettings

# Jobs run the `stepcredit` that belongs to the Python that runs Snakemake, activated or not.
os.environ.update(
    PATH=os.pathsep.join([str(Path(sys.executable).parent), *os.get_exec_path()])
)

# A training step allocates and frees the same blocks again and again: let the allocator keep them (a fifth of its time).
shell.prefix(
    "export MALLOC_TRIM_THRESHOLD_=268435456 MALLOC_MMAP_THRESHOLD_=268435456; "
)

try:
    CONFIG = validate_config(config, sources=workflow.configfiles)
except ConfigError as error:
    raise WorkflowError(str(error)) from None

ARMS = list(CONFIG.arms)
SEEDS = CONFIG.seeds
STEPS = [step for step in CONFIG.evaluation.steps if step > 0]
RATES = CONFIG.sweep.learning_rates


# The settings of each stage, as JSON. Functions, because Snakemake takes the braces of a plain string for wildcards.


def data_settings(wildcards):
    return CONFIG.data.canonical_json()


def sft_job(wildcards):
    return jobs.sft_job(CONFIG).canonical_json()


def sweep_job(wildcards):
    return jobs.sweep_job(CONFIG).canonical_json()


def rl_job(wildcards):
    return jobs.rl_job(CONFIG, wildcards.arm).canonical_json()


def rl_memory(wildcards):
    """MB of an RL job: a scorer on a server is a second engine."""
    scorer = CONFIG.arms[wildcards.arm].scorer
    return 3000 + 1500 * bool(scorer and scorer.kind in ("cached", "batched", "naive"))


def evaluation_job(wildcards):
    return jobs.evaluation_job(CONFIG).canonical_json()


def validation_job(wildcards):
    return jobs.validation_job(CONFIG).canonical_json()


def scoring_job(wildcards):
    return jobs.scoring_job(CONFIG).canonical_json()


def tables_settings(wildcards):
    return TablesSettings.from_config(CONFIG).canonical_json()


def whole_config(wildcards):
    return CONFIG.canonical_json()


def results_directory(wildcards):
    return CONFIG.outdir


def tables_directory(wildcards):
    return f"{CONFIG.outdir}/tables"


def write_config():
    """The configuration as run, beside its results; it also marks the directory as one of results."""
    path = Path(CONFIG.outdir, "config.yaml")
    text = yaml.safe_dump(CONFIG.model_dump(mode="json"), sort_keys=False)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        with atomic_path(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
