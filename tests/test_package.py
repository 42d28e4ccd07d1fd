"""Wheel and source distribution: built without a network, complete, and a command that runs from the wheel alone."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A directory with both distributions."""
    directory = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(directory), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return directory


def test_the_wheel_holds_every_file_of_the_package_and_its_types(built):
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        inside = set(wheel.namelist())
    tracked = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "src"], capture_output=True, text=True, check=False
    ).stdout.split()
    files = tracked or [str(path.relative_to(ROOT)) for path in ROOT.glob("src/**/*.py")]
    assert {file.removeprefix("src/") for file in files} <= inside
    assert "stepcredit/py.typed" in inside
    assert {Path(name).suffix for name in inside} >= {".j2", ".css", ".js"}


def test_the_source_distribution_is_a_workflow_that_runs(built):
    with tarfile.open(next(built.glob("*.tar.gz"))) as source:
        inside = {name.partition("/")[2] for name in source.getnames()}
    needed = {"Snakefile", "workflow/Snakefile", "rules/common.smk", "config/config.yaml", "config/published.yaml"}
    needed |= {"envs/cpu.lock", "profiles/default/profile.yaml", "report/workflow.rst", "Makefile", "LICENSE"}
    assert needed <= inside


def test_the_command_runs_from_the_wheel_outside_of_the_repository(built, tmp_path):
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        wheel.extractall(tmp_path / "site")
    program = "import sys, stepcredit; from stepcredit.cli import main; print(stepcredit.__file__); main()"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run(
        [sys.executable, "-c", program, "--help"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "site") in done.stdout
    assert "train-rl" in done.stdout
    assert "--install-completion" in done.stdout


@pytest.mark.parametrize("kind", ["*.whl", "*.tar.gz"])
def test_each_distribution_installs_a_command_that_runs(built, tmp_path, kind):
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    done = subprocess.run(
        [*pip, "--target", str(tmp_path), str(next(built.glob(kind)))], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [str(tmp_path / "bin/stepcredit"), "--version"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in next(built.glob(kind)).name


def stepcredit(*arguments: str, **environment: str) -> str:
    program = "import sys; sys.argv[0] = 'stepcredit'; from stepcredit.cli import main; main()"
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_help_shows_what_is_for_people_before_the_stages():
    page = stepcredit("--help", COLUMNS="120")
    people, stages = page.split("Stages, as the workflow calls them")
    assert "grade" in people
    assert "audit" in people
    assert "train-rl" in stages
    assert "train-rl" not in people


def test_the_command_tells_its_version():
    import stepcredit as package

    assert stepcredit("--version") == f"{package.__version__}\n"


def test_the_shell_completes_commands_and_options():
    asked = {"_STEPCREDIT_COMPLETE": "complete_bash"}
    assert stepcredit(**asked, COMP_WORDS="stepcredit gra", COMP_CWORD="1").split() == ["grade"]
    assert "--out" in stepcredit(**asked, COMP_WORDS="stepcredit grade --", COMP_CWORD="2").split()
