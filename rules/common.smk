"""What the rules share: the validated configuration and the settings each stage reads."""

import os
import sys
from pathlib import Path

import yaml
from snakemake.exceptions import WorkflowError
from snakemake.io import get_flag_value

from stepcredit import jobs
from stepcredit.config_files import ConfigError, validate_config
from stepcredit.memory import pretrained_mb
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

RUNS = [(arm, seed) for arm in CONFIG.arms for seed in CONFIG.seeds_of(arm)]
STEPS = CONFIG.trained_steps
RATES = CONFIG.sweep.learning_rates
# A pretrained model is an input where the workflow makes it; another one is the user's, and need not be there to plan.
PRETRAINED = [
    f"{directory}/config.json"
    for directory in [CONFIG.model.pretrained]
    if directory and Path(directory).is_relative_to(CONFIG.outdir)
]
# One GPU for each job that trains or runs an engine. `resources: gpu` counts them; a job claims which (stepcredit.devices).
GPU = int("cuda" in (CONFIG.sft.device, CONFIG.rl.device))
# A model that trains is there with its gradients, two moments, the engine's copy and a frozen scorer's; one that is
# evaluated with the engine's, twice while it loads.
SFT_MB = 2500 + pretrained_mb(CONFIG.model, 5)
TRAINING_MB = 3000 + pretrained_mb(CONFIG.model, 7)
ENGINE_MB = 2500 + pretrained_mb(CONFIG.model, 3)
# The commands that train with the configured backend, which take the same options, and the GPUs of a job.
PRIME_RL = CONFIG.backend == "prime-rl"
TRAIN_SFT, TRAIN_RL = (
    ("train-sft-prime", "train-rl-prime") if PRIME_RL else ("train-sft", "train-rl")
)
TRAINING_GPUS = 2 if PRIME_RL else GPU
# A model: what the trainer writes, in full, because a job on another machine is given only what is declared.
MODEL_FILES = ["model.safetensors", "config.json", "tokenizer.json"] + (
    [] if PRIME_RL else ["generation_config.json", "tokenizer_config.json"]
)
STABILITY_RUNS = jobs.stability_runs(CONFIG.stability)


def source_file(path):
    """A file of the workflow, told from here: itself where it is on this machine, else Snakemake's copy of it.

    Snakemake copies every source file to a temporary place, which a manifest should not name.
    """
    copy = workflow.source_path(path)
    original = os.path.normpath(get_flag_value(copy, "sourcecache_entry"))
    if not Path(original).is_file():
        return copy
    inside = Path(original).is_relative_to(Path.cwd())
    return os.path.relpath(original) if inside else original


# With `--sdm conda`: what the post-deploy script of an environment, which is a copy elsewhere, hands over to.
os.environ.update(STEPCREDIT_INSTALL=os.path.abspath(source_file("../envs/install.sh")))


# The settings of each stage, as JSON. Functions, because Snakemake takes the braces of a plain string for wildcards.


def data_settings(wildcards):
    return CONFIG.data.canonical_json()


def sft_job(wildcards):
    return jobs.sft_job(CONFIG).canonical_json()


def sweep_job(wildcards):
    return _training_job(jobs.sweep_job(CONFIG))


def rl_job(wildcards):
    return _training_job(jobs.rl_job(CONFIG, wildcards.arm))


def _training_job(job):
    return (jobs.prime_rl_job(CONFIG, job) if PRIME_RL else job).canonical_json()


def sweep_code(wildcards):
    return stage_digest(TRAIN_RL, *CONFIG.arms[CONFIG.baseline].own_modules)


def rl_code(wildcards):
    return stage_digest(TRAIN_RL, *CONFIG.arms[wildcards.arm].own_modules)


def rl_memory(wildcards):
    """MB of an RL job: a scorer on a server is a second engine."""
    scorer = CONFIG.arms[wildcards.arm].scorer
    served = bool(scorer and scorer.kind in ("cached", "batched", "naive"))
    return TRAINING_MB + served * (1500 + pretrained_mb(CONFIG.model, 1))


def evaluation_job(wildcards):
    return jobs.evaluation_job(CONFIG).canonical_json()


def validation_job(wildcards):
    return jobs.validation_job(CONFIG).canonical_json()


def stability_job(wildcards):
    run = (wildcards.mismatch, wildcards.method, wildcards.rewards)
    return jobs.stability_job(CONFIG, *run).canonical_json()


def stability_rate(wildcards, input):
    rate = CONFIG.stability.learning_rate
    return (
        f"--learning-rate {rate}"
        if rate
        else f"--learning-rate-file {input.learning_rate}"
    )


def drift_job(wildcards):
    return jobs.drift_job(CONFIG).canonical_json()


def mismatch_cost_job(wildcards):
    return jobs.mismatch_cost_job(CONFIG).canonical_json()


def parity_job(wildcards):
    return jobs.parity_job(CONFIG, wildcards.model).canonical_json()


def ablation_job(wildcards):
    return jobs.ablation_job(CONFIG, wildcards.run).canonical_json()


def random_model_job(wildcards):
    return jobs.random_model_job(CONFIG).canonical_json()


def audited_model(wildcards):
    """Files of the SFT checkpoint, the baseline at its last step (first seed), or random weights."""
    last = (
        f"rl/{CONFIG.baseline}/seed{CONFIG.seeds[0]}/checkpoints/step{STEPS[-1]}"
        if STEPS
        else "sft/model"
    )
    directory = {"sft": "sft/model", "rl": last, "random": "parity/random_model"}
    return [
        f"{CONFIG.outdir}/{directory[wildcards.model]}/{file}" for file in MODEL_FILES
    ]


def signal_job(wildcards):
    return jobs.signal_job(CONFIG).canonical_json()


def scoring_job(wildcards):
    return jobs.scoring_job(CONFIG).canonical_json()


def tables_settings(wildcards):
    return TablesSettings.from_config(CONFIG).canonical_json()


def whole_config(wildcards):
    return CONFIG.canonical_json()


def results_directory(wildcards):
    return CONFIG.outdir


def write_config():
    """The configuration as run, beside its results; it also marks the directory as one of results."""
    path = Path(CONFIG.outdir, "config.yaml")
    text = yaml.safe_dump(CONFIG.model_dump(mode="json"), sort_keys=False)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        with atomic_path(path) as temporary:
            temporary.write_text(text, encoding="utf-8")


if not workflow.modifier.is_main_snakefile():
    # Snakemake runs `onstart` of the main workflow alone; as a module of another we leave our configuration all the same.
    start_main = workflow._onstart

    def start(log):
        start_main(log)
        write_config()

    workflow._onstart = start
