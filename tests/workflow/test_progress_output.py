"""What a person sees of a run: little while all goes well, the cause and the log where it does not."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from smoke_dag import ROOT

pytestmark = pytest.mark.workflow

SNAKEFILE = """
rule all:
    default_target: True
    input: "good.txt", "bad.txt"

rule good:
    output: "good.txt"
    log: "logs/good.log"
    shell: "echo fine > {output}"

rule bad:
    input: "good.txt"
    output: "bad.txt"
    log: "logs/bad.log"
    shell: "(echo starting; echo 'ValueError: the cause'; exit 3) > {log} 2>&1"
"""


@pytest.fixture
def run(tmp_path):
    """Snakemake on a rule that works and one that fails, with the profile of the workflow."""
    (tmp_path / "Snakefile").write_text(SNAKEFILE)

    def snakemake(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "snakemake", "--cores", "1", "--workflow-profile"]
        command += [str(ROOT / "profiles/default"), *arguments]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "200"}
        )

    return snakemake


def test_a_good_run_is_a_line_a_job(run):
    done = run("good.txt")
    assert done.returncode == 0
    lines = re.sub(r"\d+ s", "N s", done.stderr).strip().splitlines()
    assert lines[-3:] == ["1 job to run, 1 at a time: good", "[1/1] good: done in N s", "All done: 1 job in N s"]
    assert len(lines) <= 4


def test_a_failed_job_ends_the_output_with_its_cause_and_its_log(run):
    done = run()
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith(
        "bad failed with exit status 3\n  | starting\n  | ValueError: the cause\nlog: logs/bad.log"
    )
    assert done.stderr.count("ValueError") == 1


def test_a_dry_run_and_printed_commands_look_as_usual(run):
    planned = run("--dry-run")
    assert "This was a dry-run" in planned.stdout + planned.stderr
    printed = run("--printshellcmds", "good.txt")
    assert "echo fine > good.txt" in printed.stdout + printed.stderr


def test_a_mistake_in_the_call_is_still_said(run):
    assert "No rule to produce absent.txt" in run("absent.txt").stderr


def test_the_log_of_snakemake_is_complete(run, tmp_path):
    run()
    (log,) = Path(tmp_path, ".snakemake/log").glob("*.log")
    assert "rule bad:" in log.read_text()
