from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from stepcredit.cli import active_settings
from stepcredit.cli import audit as command
from stepcredit.provenance.errors import UserError

METRICS = "sft/metrics.parquet"
ARMS = {"baseline": {"label": "baseline", "credit": "group_advantage"}}
CONFIG = {
    "arms": ARMS,
    "sft": {"steps": 4, "warmup_steps": 1, "decay_steps": 1, "learning_rate": 0.005},
    "evaluation": {"samples": 2, "pass_k": [1]},
    "data": {"splits": {"heldout": 3, "validation": 1}},
}


@pytest.fixture
def configured(results: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The results directory with a whole configuration, and the settings of one stage known."""
    (results / "config.yaml").write_text(yaml.safe_dump(CONFIG))
    known = {"steps": "sft.steps", "learning_rate": "sft.learning_rate"}
    monkeypatch.setattr(
        active_settings,
        "STAGE_SETTINGS",
        {
            "train-sft": lambda config, manifest: {
                "seed": 0,
                "sft": {name: getattr(config.sft, name) for name in known},
            }
        },
    )
    return results


def run(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(command.commands, [str(argument) for argument in arguments], catch_exceptions=False)
    return done.exit_code, done.stdout


def test_exit_code_is_0_and_the_text_short_when_all_is_well(configured: Any):
    code, text = run(configured.root)
    assert code == 0
    assert text.startswith(f"{configured.root}: all is well (9 artifacts of 4 manifests, ")
    assert "note: settings of evaluate were not compared" in text
    assert "train-sft" not in text


def test_exit_code_is_1_and_each_finding_names_its_file_and_repair(configured: Any):
    (configured / METRICS).write_bytes(b"")
    (configured / "extra.csv").touch()
    code, text = run(configured.root)
    assert code == 1
    assert f"{configured.root}: 2 findings on 2 files" in text
    assert "\ntampered (1): its bytes are not those that its stage wrote\n  sft/metrics.parquet\n" in text
    assert f"    repair: snakemake --cores all --forcerun {configured.root}/sft/metrics.manifest.json\n" in text
    assert f"  extra.csv\n    no manifest accounts for it\n    repair: rm {configured.root}/extra.csv\n" in text


def test_json_is_for_programs(configured: Any):
    (configured / METRICS).unlink()
    code, text = run(configured.root, "--json")
    report = json.loads(text)
    assert code == 1
    assert report["verdict"] == "failed"
    assert [finding["path"] for finding in report["findings"]] == [METRICS]


def test_many_files_of_one_finding_are_counted_not_listed(configured: Any):
    config = configured.root.parent / "other.yaml"
    config.write_text(yaml.safe_dump(CONFIG | {"sft": CONFIG["sft"] | {"learning_rate": 0.1}}))
    for index in range(20):
        (configured / f"sft/model/part{index:02}.json").write_text("{}")
    configured.stage("train-sft", [], [METRICS, "sft/model"], lambda: None)
    code, text = run(configured.root, "--config", config)
    assert code == 1
    assert text.count("sft.learning_rate was 0.005, is 0.1") == 1
    assert "and 13 more (--json names them all)" in text
    assert f"repair: snakemake --cores all --configfile {config} --forcerun" in text


def test_repairs_name_the_configuration_of_results_that_are_not_the_default(configured: Any):
    path = configured / "config.yaml"
    path.write_text(yaml.safe_dump(CONFIG | {"outdir": "results/smoke"}))
    (configured / METRICS).unlink()
    _, text = run(configured.root)
    assert f"repair: snakemake --cores all --configfile {path} --forcerun {configured.root}/sft/" in text


def test_sizes_are_held_against_the_given_configuration(configured: Any):
    config = configured.root.parent / "other.yaml"
    config.write_text(yaml.safe_dump(CONFIG | {"evaluation": {"samples": 4, "pass_k": [1]}}))
    code, text = run(configured.root, "--config", config)
    assert code == 1
    assert "6 rows, not 3 heldout puzzles x 4 samples = 12" in text


@pytest.mark.parametrize("content", [b"arms: [", b"\xff\xfe", b"", b"arms: {}\n"])
def test_a_damaged_configuration_beside_the_results_is_a_finding(configured: Any, content: bytes):
    (configured / "config.yaml").write_bytes(content)
    code, text = run(configured.root)
    assert code == 1
    assert "\ninvalid (1): " in text
    assert "\n  config.yaml\n" in text


def test_a_wrong_configuration_that_the_user_names_is_the_users_mistake(configured: Any, tmp_path: Path):
    with pytest.raises(UserError, match="cannot be read"):
        run(configured.root, "--config", tmp_path / "absent.yaml")
    with pytest.raises(UserError, match="no such results directory"):
        run(tmp_path / "absent")


def test_results_without_a_configuration_are_audited_without_their_settings(configured: Any):
    (configured / "config.yaml").unlink()
    code, text = run(configured.root)
    assert code == 0
    assert "note: settings were not compared: no configuration was given" in text


def test_file_names_that_are_not_unicode_are_printed_escaped(configured: Any):
    with open(os.fsencode(configured.root) + b"/\xff.csv", "wb"):
        pass
    code, text = run(configured.root)
    assert code == 1
    assert "\\udcff.csv" in text


def test_a_directory_without_results_is_refused_or_failed(tmp_path: Path, results: Any):
    results.root = tmp_path / "empty"
    with pytest.raises(UserError, match="no such results directory; the workflow makes it"):
        results.audit()
    results.root.mkdir()
    assert results.found() == {".": "missing"}
