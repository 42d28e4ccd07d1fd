"""The how-to of a credit scheme, followed to the letter in a copy of the package."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from stepcredit.config_files import load_config

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/howto/credit-scheme.md").read_text()
CODE, CONFIGURATION = (
    re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL).group(1) for language in ("python", "yaml")
)
FILE = re.search(r"Write `(src/stepcredit/credit/\w+\.py)`", PAGE).group(1)
ARM = yaml.safe_load(CONFIGURATION)

CREDIT = """
import json, sys
sys.path.insert(0, sys.argv[1])
from piecewise import Piecewise, group
from stepcredit.settings.arm import ArmSettings
from stepcredit.credit.own import own_scheme

tokens = Piecewise()
right = ["<reasoning>", "a", "\\n\\n", "b", "</reasoning>", "<solution>", "3+5", "</solution>"]
wrong = ["<reasoning>", "a", "</reasoning>", "<solution>", "2", "</solution>"]
arm = ArmSettings.model_validate(json.loads(sys.argv[2]))
scheme = own_scheme(arm.scheme)(arm, tokens)
credits, metrics = scheme.assign([group(tokens, right, wrong)])
print(json.dumps([rollout.advantages.tolist() for rollout in credits[0].rollouts]))
"""


@pytest.fixture
def followed(tmp_path) -> Path:
    """A copy of the package with the file of the page, and the page's configuration beside it."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "config", tmp_path / "config")
    (tmp_path / FILE).write_text(CODE)
    (tmp_path / "mine.yaml").write_text(CONFIGURATION)
    return tmp_path


def python(directory: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(directory / "src")}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def planned(directory: Path, *arguments: str) -> dict[str, int]:
    output = python(
        directory, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--directory", ".", "--cores", "1",
        *arguments, "--dry-run", "--quiet", "rules", "--configfile", "mine.yaml",
    )  # fmt: skip
    return {rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", output, re.MULTILINE)}


def test_it_takes_one_file_of_under_sixty_lines():
    assert len(CODE.splitlines()) < 60
    assert list(ARM["arms"]) == ["discounted"]
    assert ARM["arms"]["discounted"]["scheme"] == Path(FILE).stem


def test_the_scheme_credits_as_the_page_says(followed):
    tests = str(ROOT / "tests/credit")
    right, wrong = json.loads(python(followed, "-c", CREDIT, tests, json.dumps(ARM["arms"]["discounted"])))
    # two paragraphs of three tokens and one, then the tail of four and the end
    assert right == [0.25, 0.25, 0.25, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]
    assert wrong == [-0.5] * 7


def test_the_file_is_typed_and_tidy(followed):
    python(followed, "-m", "ruff", "check", "--config", str(ROOT / "pyproject.toml"), FILE)
    python(followed, "-m", "ruff", "format", "--check", "--config", str(ROOT / "pyproject.toml"), FILE)


@pytest.mark.workflow
def test_the_new_arm_is_planned_beside_the_others(followed):
    others = load_config(followed / "config/config.yaml")
    runs = sum(len(others.seeds_of(arm)) for arm in others.arms) + len(others.seeds)
    assert planned(followed)["train_rl"] == runs
    assert planned(followed, "results/eval/discounted/seed0/step20.parquet")["train_rl"] == 1


def test_the_code_of_the_scheme_concerns_its_arm_alone(followed):
    program = (
        "from pathlib import Path; from stepcredit.config_files import load_config;"
        "from stepcredit.provenance.stages import stage_digest;"
        "config = load_config(Path('config/config.yaml'), Path('mine.yaml'));"
        "print({name: stage_digest('train-rl', *arm.own_modules) for name, arm in config.arms.items()})"
    )
    before = python(followed, "-c", program)
    file = followed / FILE
    file.write_text(file.read_text().replace("DISCOUNT = 0.5", "DISCOUNT = 0.25"))
    after = python(followed, "-c", program)
    old, new = (yaml.safe_load(text) for text in (before, after))
    assert {arm for arm in old if old[arm] != new[arm]} == {"discounted"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"scheme": "absent"}, "no file credit/absent.py"),
        ({"scheme": None}, 'credit "own" needs the name of a scheme'),
        ({"credit": "group_advantage"}, "no other credit takes one"),
    ],
)
def test_a_wrong_entry_is_refused(change, said):
    from stepcredit.config_files import ConfigError, load_config

    arm = {"label": "x", "credit": "own", "scheme": "paragraphs", **change}
    with pytest.raises(ConfigError, match=said):
        load_config(ROOT / "config/config.yaml", overrides={"arms": {"discounted": arm}})


def test_a_file_that_builds_nothing_is_named():
    from stepcredit.credit.own import own_scheme
    from stepcredit.provenance.errors import UserError

    with pytest.raises(UserError, match=r"paragraphs\.py: defines no build"):
        own_scheme("paragraphs")
