"""The whole DAG on the smoke configuration, run once and shared by the tests that look at it."""

from pathlib import Path

import pytest
from smoke_dag import prepare, snakemake


@pytest.fixture(scope="session")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Working directory of a finished smoke run; its results are in `results/smoke`."""
    directory = prepare(tmp_path_factory.mktemp("smoke"))
    done = snakemake(directory)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return directory
