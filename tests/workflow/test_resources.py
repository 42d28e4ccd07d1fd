"""What jobs ask Snakemake for: GPUs where the configuration computes on them, memory that grows with the model."""

import json
import re
import subprocess
import sys

import pytest
from smoke_dag import ROOT, prepare, snakemake

pytestmark = pytest.mark.workflow


def resources(directory, *arguments: str) -> dict[str, dict[str, str]]:
    """Resources of the first job of each rule, from a dry run in full."""
    done = snakemake(directory, "--dry-run", "--verbose", *arguments)
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    found: dict[str, dict[str, str]] = {}
    for rule, body in re.findall(r"^(?:local)?rule (\w+):\n((?: .*\n)+)", output, re.MULTILINE):
        line = re.search(r"resources: (.*)", body)
        found.setdefault(rule, dict(re.findall(r"(\w+)=([^,\s]+)", line.group(1))) if line else {})
    return found


def test_jobs_that_train_or_sample_ask_for_a_gpu_where_the_configuration_has_one(tmp_path):
    on_cpu = resources(prepare(tmp_path))
    on_gpu = resources(tmp_path, "--config", 'rl={"device":"cuda"}', 'sft={"device":"cuda"}')
    asking = {rule for rule, asked in on_gpu.items() if asked.get("gpu") == "1"}
    assert {"train_sft", "sweep_learning_rate", "train_rl", "evaluate", "train_mismatch", "audit_parity"} <= asking
    assert not asking & {"ingest_demonstrations", "tables", "report"}
    assert not [rule for rule, asked in on_cpu.items() if asked.get("gpu", "0") != "0"]


def test_memory_grows_with_the_pretrained_model(tmp_path):
    small = resources(prepare(tmp_path))
    large = resources(tmp_path, "--configfile", "config/smollm2.yaml")
    for rule in ("train_sft", "train_rl", "evaluate"):
        assert int(large[rule]["mem_mb"]) > int(small[rule]["mem_mb"]) + 1500


def test_a_job_that_finds_no_gpu_says_so_before_any_work(tmp_path):
    settings = {"model": {}, "sft": {"device": "cuda"}, "largest_number": 20}
    command = [*[sys.executable, "-m", "stepcredit.cli", "train-sft", "--settings", json.dumps(settings)]]
    command += ["--demonstrations", "absent.parquet", "--state", "state", "--out-dir", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert re.search(r"(this torch is built for the CPU|needs 1 GPU)", done.stderr)
    assert list(tmp_path.iterdir()) == []


def test_the_profiles_name_rules_that_exist():
    import yaml

    rules = {
        name
        for file in (ROOT / "rules").glob("*.smk")
        for name in re.findall(r"^rule (\w+):|^use rule \w+ as (\w+)", file.read_text(), re.MULTILINE)
        for name in name
        if name
    }
    for profile in ("slurm", "kubernetes"):
        settings = yaml.safe_load((ROOT / "profiles" / profile / "config.yaml").read_text())
        named = {*settings.get("set-resources", {}), *settings.get("set-threads", {})}
        assert named <= rules
        assert settings["executor"] == profile
