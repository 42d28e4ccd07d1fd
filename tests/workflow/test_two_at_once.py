"""Two Snakemakes in one directory: the second leaves with a sentence, the first does not notice."""

import subprocess
import time

import pytest
from smoke_dag import prepare, smoke_command, snakemake

pytestmark = pytest.mark.workflow
TARGET = "results/smoke/data/splits/manifest.json"


def test_the_second_is_told_that_the_directory_is_locked(tmp_path):
    directory = prepare(tmp_path)
    first = subprocess.Popen(
        smoke_command(directory, TARGET), cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    locks = directory / ".snakemake/locks"
    while not (locks.is_dir() and any(locks.iterdir())):
        assert first.poll() is None, first.stdout.read()
        time.sleep(0.02)
    second = snakemake(directory, TARGET)
    assert first.poll() is None, "the first had ended before the second could be told"
    assert second.returncode != 0
    assert "Directory cannot be locked" in second.stdout + second.stderr
    output, _ = first.communicate()
    assert first.returncode == 0, output
    assert (directory / TARGET).is_file()
