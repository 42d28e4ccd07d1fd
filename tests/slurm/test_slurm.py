"""The workflow on a real Slurm: each job is Slurm's, and training that `scancel` kills is retried and resumes."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import one_node
import pytest
import yaml

ROOT = Path(__file__).parents[2]
STEPS = 400
FEW = {
    "data": {"synthetic": {"demonstrations": 300}, "splits": {"validation": 8, "heldout": 8}},
    "sft": {"steps": STEPS, "batch_size": 8, "warmup_steps": 10, "decay_steps": 10, "checkpoint_every": 5},
}
MISSING = one_node.missing() or (
    "" if importlib.util.find_spec("snakemake_executor_plugin_slurm") else "needs snakemake-executor-plugin-slurm"
)
pytestmark = [pytest.mark.workflow, pytest.mark.skipif(bool(MISSING), reason=MISSING)]


def test_jobs_run_in_slurm_and_a_cancelled_one_resumes(tmp_path):
    shutil.copytree(ROOT / "config", tmp_path / "config")
    (tmp_path / "few.yaml").write_text(yaml.safe_dump(FEW))
    command = [
        *[sys.executable, "-m", "snakemake", "--profile", str(ROOT / "profiles" / "slurm")],
        *["--snakefile", str(ROOT / "Snakefile"), "--directory", str(tmp_path)],
        *["--configfile", "config/smoke.yaml", "few.yaml", "--slurm-status-command", "squeue"],
        *["--slurm-init-seconds-before-status-checks", "5", "--latency-wait", "5"],
        *["--", "results/smoke/sft/metrics.parquet"],
    ]
    with one_node.cluster(tmp_path / "slurm") as environment, (tmp_path / "snakemake.log").open("wb") as log:
        run = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=subprocess.STDOUT)
        try:
            seen, cancelled = watch(run, environment, tmp_path / "results/smoke/state/sft/latest/progress.json")
        finally:
            if run.poll() is None:
                run.terminate()
                run.wait(60)
    told = (tmp_path / "snakemake.log").read_text()
    assert run.returncode == 0, told[-4000:]
    assert len(seen) >= 5, "three jobs of data, training, and training again"
    started = re.findall(rf"(\d+)/{STEPS} ", (tmp_path / "results/smoke/logs/sft.log").read_text())
    assert int(started[0]) >= cancelled > 0, "the second attempt went on from the state that the first one left"


def watch(run: subprocess.Popen, environment: dict[str, str], state: Path) -> tuple[set[str], int]:
    """Ids of the jobs that `squeue` showed, and the step whose state training had left when it was cancelled."""
    seen: set[str] = set()
    cancelled = 0
    deadline = time.monotonic() + 1200
    while run.poll() is None and time.monotonic() < deadline:
        listed = subprocess.run(
            ["squeue", "--noheader", "--states=all", "--format=%i %T"],
            env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        jobs = [line.split() for line in listed.stdout.splitlines()]
        seen |= {job for job, _ in jobs}
        running = [job for job, status in jobs if status == "RUNNING"]
        if not cancelled and running and state.is_file():
            cancelled = int(json.loads(state.read_text())["step"])
            subprocess.run(["scancel", *running], env=environment, check=True)
        time.sleep(0.2)
    return seen, cancelled


def test_the_environment_of_a_cluster_is_its_own(tmp_path):
    with one_node.cluster(tmp_path / "slurm") as environment:
        assert environment["SLURM_CONF"] != os.environ.get("SLURM_CONF")
        told = subprocess.run(
            ["sbatch", "--parsable", "--wrap", "true"],
            cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert told.stdout.strip() == "1"
