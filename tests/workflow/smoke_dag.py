"""Running and planning the DAG on the smoke configuration, in a working directory of a test."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def prepare(directory: Path) -> Path:
    """A working directory as a user has it: the configuration, no results."""
    directory.mkdir(parents=True, exist_ok=True)
    shutil.copytree(ROOT / "config", directory / "config", dirs_exist_ok=True)
    return directory


def smoke_command(directory: Path, *arguments: str, snakefile: Path = ROOT / "Snakefile") -> list[str]:
    """How Snakemake is called on the smoke configuration."""
    return [
        *[sys.executable, "-m", "snakemake", "--snakefile", str(snakefile)],
        *["--directory", str(directory), "--configfile", "config/smoke.yaml", "--cores", "all"],
        *arguments,
    ]


def snakemake(
    directory: Path, *arguments: str, snakefile: Path = ROOT / "Snakefile", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Snakemake on the smoke configuration, with `directory` as the working directory."""
    return subprocess.run(
        smoke_command(directory, *arguments, snakefile=snakefile),
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def planned(
    directory: Path, *arguments: str, snakefile: Path = ROOT / "Snakefile", **environment: str
) -> dict[str, int]:
    """The jobs that a dry run plans: rule to number."""
    done = snakemake(directory, *arguments, "--dry-run", "--quiet", "rules", snakefile=snakefile, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    if "Nothing to be done" in done.stdout + done.stderr:
        return {}
    lines = (done.stdout + done.stderr).splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith("job  "))
    jobs = {}
    for line in lines[start + 2 :]:
        words = line.split()
        if len(words) != 2 or words[0] == "total":
            break
        jobs[words[0]] = int(words[1])
    return jobs
