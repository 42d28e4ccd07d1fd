"""Editing code reruns the stages that run it, and no others."""

import shutil
from pathlib import Path

import pytest
from smoke_dag import ROOT, planned

pytestmark = pytest.mark.workflow


@pytest.fixture
def package(tmp_path) -> Path:
    """A copy of the package to edit, put before the installed one."""
    shutil.copytree(ROOT / "src", tmp_path / "src")
    return tmp_path / "src"


def edit(package: Path, module: str, old: str, new: str) -> None:
    file = package / "stepcredit" / module
    text = file.read_text()
    assert text.count(old) >= 1, f"{module} no longer holds {old!r}"
    file.write_text(text.replace(old, new, 1))


def test_an_edit_of_the_trainer_reruns_training_and_what_follows(smoke, package):
    edit(package, "training/policy_update.py", "totals.loss += self.", "totals.loss = totals.loss + self.")
    jobs = planned(smoke, PYTHONPATH=str(package))
    assert {"sweep_learning_rate", "train_rl", "evaluate", "report"} <= jobs.keys()
    assert not {"train_sft", "split_puzzles", "ingest_demonstrations", "evaluate_sft"} & jobs.keys()


def test_an_edit_of_the_report_reruns_the_report_alone(smoke, package):
    edit(package, "reporting/report.py", "LARGEST = 5_000_000", "LARGEST = 4_000_000")
    assert planned(smoke, PYTHONPATH=str(package)) == {"report": 1, "all": 1}


def test_comments_and_docstrings_rerun_nothing(smoke, package):
    edit(package, "training/rl.py", '"""The RL loop:', '"""The loop of RL:')
    edit(package, "training/policy_update.py", "class PolicyUpdate:", "# a remark\nclass PolicyUpdate:")
    assert planned(smoke, PYTHONPATH=str(package)) == {}
