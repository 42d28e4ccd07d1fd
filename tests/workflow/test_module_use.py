"""The workflow where others look for it, and as a module of another workflow."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from smoke_dag import ROOT, planned, prepare, snakemake

pytestmark = pytest.mark.workflow

HOST = f"""
configfile: "config/smoke.yaml"

module stepcredit:
    snakefile: "{ROOT}/workflow/Snakefile"
    config: config["credit"]

use rule * from stepcredit as stepcredit_*

rule own:
    input: rules.stepcredit_clean_demonstrations.output.clean,
    output: "own/size.txt",
    shell: "wc -c < {{input}} > {{output}}"
"""


@pytest.fixture
def host(tmp_path) -> Path:
    """Another workflow that has ours as a module, configured under a key of its own, with a few demonstrations."""
    merged = yaml.safe_load((ROOT / "config/config.yaml").read_text())
    merged["outdir"] = "credit"
    merged["data"]["synthetic"]["demonstrations"] = 20
    (tmp_path / "config").mkdir()
    (tmp_path / "config/smoke.yaml").write_text(yaml.safe_dump({"credit": merged}))
    (tmp_path / "Snakefile").write_text(HOST)
    return tmp_path


def run(directory: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "snakemake", "--cores", "1", *arguments]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_catalogs_snakefile_plans_what_the_top_level_one_plans(tmp_path):
    directory = prepare(tmp_path)
    plan = planned(directory, snakefile=ROOT / "workflow/Snakefile")
    assert plan.pop("default") == 1
    assert plan == {rule: jobs for rule, jobs in planned(directory).items() if rule != "all"}


def test_another_workflow_plans_our_report_under_its_own_names(host):
    plan = run(host, "--dry-run", "credit/report.html")
    assert "stepcredit_train_rl  " in plan
    assert "output: credit/rl/moving/seed2/metrics.parquet" in plan
    assert " results/" not in plan


def test_another_workflow_uses_our_files_and_finds_our_configuration(host):
    run(host, "own/size.txt")
    assert int((host / "own/size.txt").read_text()) > 0
    assert yaml.safe_load((host / "credit/config.yaml").read_text())["data"]["synthetic"]["demonstrations"] == 20


def test_jobs_are_given_the_file_itself_of_the_published_numbers(tmp_path):
    """Not Snakemake's copy in a temporary place, which the manifest of claims would name."""
    directory = prepare(tmp_path)
    plan = snakemake(directory, "--dry-run", "--printshellcmds", "results/smoke/claims.json")
    assert f"--published {ROOT / 'config/published.yaml'} --out results/smoke/claims.json" in plan.stdout + plan.stderr
