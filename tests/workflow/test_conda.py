"""`--sdm conda`, with a stand-in for conda: which environment Snakemake makes of envs/, and that jobs run in it."""

import hashlib
import sys
from pathlib import Path

import pytest
import yaml
from smoke_dag import ROOT, prepare, snakemake

pytestmark = pytest.mark.workflow

CONDA = """\
#!/bin/bash
case "$1 $2" in
  "info --json") echo '{{"conda_prefix": "{base}", "platform": "linux-64"}}' ;;
  "--version ") echo "conda 25.1.0" ;;
  "config --get") echo '{{"get": {{"channel_priority": "strict"}}}}' ;;
  "env create")
    while [ "$1" != --prefix ]; do shift; done
    mkdir -p "$2/bin"
    cp {base}/python "$2/bin/python" ;;
  "clean -y") ;;
  *) echo "unexpected: conda $*" >&2; exit 1 ;;
esac
"""
PYTHON = """\
#!/bin/bash
# An environment's Python that writes down what pip is to install, and has the package once that is installed from here.
printf '%s: ' "$PWD" >> {base}/installed
echo "$*" >> {base}/installed
for last; do true; done
if [ "$last" = . ]; then
    command="$CONDA_PREFIX/bin/stepcredit"
    printf '#!/bin/bash\\necho "$0" >> {base}/used\\nexec {python} -m stepcredit.cli "$@"\\n' > "$command"
    chmod +x "$command"
fi
"""


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """The directory of a conda that makes environments with nothing in them but a Python."""
    (tmp_path / "base/bin").mkdir(parents=True)
    scripts = {
        "bin/conda": CONDA,
        "python": PYTHON,
        "bin/activate": 'export CONDA_PREFIX="$1" PATH="$1/bin:$PATH"\n',
    }
    for name, text in scripts.items():
        file = tmp_path / "base" / name
        file.write_text(text.format(base=tmp_path / "base", python=sys.executable) if "{base}" in text else text)
        file.chmod(0o755)
    return tmp_path / "base"


def test_an_environment_of_conda_gets_the_lock_torch_and_the_package_and_jobs_run_in_it(base, tmp_path, monkeypatch):
    directory = prepare(tmp_path / "work")
    monkeypatch.setenv("PATH", f"{base}/bin:/usr/bin:/bin")
    few = ["--config", 'data={"synthetic":{"demonstrations":20}}']
    done = snakemake(directory, *few, "--sdm", "conda", "--", "results/smoke/data/raw.parquet")
    assert done.returncode == 0, done.stdout + done.stderr
    steps = [line.removeprefix(f"{ROOT}: ") for line in (base / "installed").read_text().splitlines()]
    install = "-m pip --disable-pip-version-check install --quiet --no-deps "
    assert steps[0] == f"{install}--require-hashes -r envs/cpu.lock"
    assert steps[1].startswith(f"{install}torch==")
    assert steps[2:] == [f"{install}--no-build-isolation -e ."]
    (used,) = (base / "used").read_text().splitlines()
    assert Path(used).is_relative_to(directory / ".snakemake/conda")


def test_an_environment_is_made_anew_when_the_lock_changes():
    lock = hashlib.sha256((ROOT / "envs/cpu.lock").read_bytes()).hexdigest()[:16]
    for file in (ROOT / "envs").glob("*.yaml"):
        deploy = file.with_suffix(".post-deploy.sh").read_text()
        assert f"cpu.lock: {lock}\n" in deploy, "`make lock` writes it; Snakemake looks at nothing but the two files"


def test_the_environment_files_ask_conda_for_nothing_that_it_would_take_from_beside_its_copy_of_them():
    for file in (ROOT / "envs").glob("*.yaml"):
        assert yaml.safe_load(file.read_text())["dependencies"] == ["python=3.11", "pip"]
