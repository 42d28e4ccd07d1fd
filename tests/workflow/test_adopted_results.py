"""What `stepcredit adopt` copied counts as done for Snakemake."""

import subprocess
import sys

import pytest
from smoke_dag import planned, prepare, snakemake

pytestmark = pytest.mark.workflow
TARGET = "results/smoke/data/splits/manifest.json"


def test_adopted_files_are_not_made_again(tmp_path):
    there, here = prepare(tmp_path / "there"), prepare(tmp_path / "here")
    done = snakemake(there, TARGET)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    results = there / "results/smoke"
    command = [sys.executable, "-m", "stepcredit.cli", "adopt", str(results), str(here / "results/smoke")]
    adopted = subprocess.run(
        [*command, "--config", str(results / "config.yaml")], capture_output=True, text=True, check=False
    )
    assert adopted.stdout == "3 jobs adopted, 0 already here, 0 refused\n", adopted.stdout + adopted.stderr
    assert planned(here, TARGET) == {}
