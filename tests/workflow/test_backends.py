"""The plan of the write-up's scale, by either backend; nothing of it runs here."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]


def plan(tmp_path: Path, **overrides) -> tuple[str, float]:
    """What a dry run of config/paper.yaml with a file over it prints, and its CPU seconds."""
    over = tmp_path / "over.yaml"
    over.write_text(yaml.safe_dump({"outdir": str(tmp_path / "paper"), **overrides}))
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--printshellcmds", "--nolock", "--cores", "2"]
    command += ["--resources", "gpu=2"]  # as docs/howto/prime-rl.md says; the default profile counts one
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [*command, "--configfile", str(ROOT / "config" / "paper.yaml"), str(over)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout + done.stderr, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize(
    ("backend", "commands", "others"),
    [
        ("prime-rl", ("stepcredit train-sft-prime ", "stepcredit train-rl-prime "), "stepcredit train-sft "),
        ("native", ("stepcredit train-sft ", "stepcredit train-rl "), "train-rl-prime"),
    ],
)
def test_the_whole_plan_without_a_gpu(tmp_path, backend, commands, others):
    printed, seconds = plan(tmp_path, backend=backend)
    assert all(command in printed for command in commands)
    assert others not in printed
    two = any("resources:" in line and "gpu=2" in line for line in printed.splitlines())
    assert two == (backend == "prime-rl")
    assert "checkpoints/step240/model.safetensors" in printed
    assert seconds < 20


def test_three_hundred_runs_are_planned_in_time(tmp_path):
    printed, seconds = plan(tmp_path, seeds=list(range(100)), evaluation={"steps": [0, 30, 60, 240]})
    assert sum(line.split() == ["train_rl", "301"] for line in printed.splitlines()) >= 1
    assert seconds < 30
