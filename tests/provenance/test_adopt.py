"""What was made elsewhere is taken over exactly if it would be made the same here."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from made_results import Results

from stepcredit.provenance.adopt import Adoption, adopt
from stepcredit.provenance.errors import UserError
from stepcredit.provenance.manifest import read_manifest
from stepcredit.provenance.versions import package_versions

JOBS = {
    "data/raw.manifest.json",
    "data/splits/demonstrations.manifest.json",
    "eval/sft/step0.manifest.json",
    "sft/metrics.manifest.json",
}
AFTER_SFT = {"sft/metrics.manifest.json", "eval/sft/step0.manifest.json"}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return tmp_path / "here"


def take(results: Results, here: Path, **arguments: object) -> Adoption:
    return adopt(results.root, here, results.audit(**arguments))


def test_everything_that_verifies_is_copied_in_the_order_of_its_inputs(results: Results, here: Path):
    adoption = take(results, here)
    assert set(adoption.adopted) == JOBS
    assert adoption.refused == {}
    for name in JOBS:
        assert (here / name).read_bytes() == (results / name).read_bytes()
        manifest = read_manifest(here / name)
        made = [here / path for path in manifest.told_from(str(Path(name).parent)).outputs]
        assert made
        for path in manifest.told_from(str(Path(name).parent)).inputs:
            assert all((here / path).stat().st_mtime_ns <= output.stat().st_mtime_ns for output in made)
    shutil.copy(results / "config.yaml", here)
    assert Results(here).audit().verdict == "ok"


def test_a_second_time_there_is_nothing_to_do(results: Results, here: Path):
    take(results, here)
    before = {path: path.stat().st_mtime_ns for path in here.rglob("*")}
    adoption = take(results, here)
    assert (set(adoption.present), adoption.adopted, adoption.refused) == (JOBS, [], {})
    assert {path: path.stat().st_mtime_ns for path in here.rglob("*")} == before


def test_a_flipped_byte_refuses_its_job_and_all_that_follows(results: Results, here: Path):
    model = results / "sft/model/model.safetensors"
    content = bytearray(model.read_bytes())
    content[-1] ^= 1
    model.write_bytes(content)
    adoption = take(results, here)
    assert adoption.refused.keys() == AFTER_SFT
    assert "sft/model/model.safetensors is tampered: sha256 was" in adoption.refused["sft/metrics.manifest.json"]
    assert "its input sft/model/" in adoption.refused["eval/sft/step0.manifest.json"]
    assert not (here / "sft").exists()


def test_other_settings_refuse_their_job(results: Results, here: Path):
    wanted = {"seed": 0, "sft": {"steps": 5, "learning_rate": 0.005}}
    adoption = take(
        results, here, current_settings=lambda manifest: wanted if manifest.stage == "train-sft" else manifest.settings
    )
    assert adoption.refused.keys() == AFTER_SFT
    assert "is stale: params: sft.steps was 4, is 5" in adoption.refused["sft/metrics.manifest.json"]


def test_other_code_refuses_its_job(results: Results, here: Path, tmp_path: Path):
    package = tmp_path / "stepcredit"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "rollouts.py").write_text("EDITED = True\n")
    adoption = take(results, here, package_root=package)
    assert adoption.refused.keys() == JOBS
    assert all("is stale: code" in reason for reason in adoption.refused.values())


def test_other_package_versions_refuse_the_job(results: Results, here: Path):
    adoption = take(results, here, versions={**package_versions(), "torch": "1.0"})
    assert adoption.refused.keys() == JOBS
    assert all(reason.endswith(", is 1.0") for reason in adoption.refused.values())


def test_another_package_version_makes_everything_stale_and_an_absent_package_is_noted(results: Results):
    versions = {**package_versions(), "torch": "1.0", "stepcredit": "99"}
    del versions["numpy"]
    report = results.audit(versions=versions)
    assert {(finding.verdict, finding.detail[:10]) for finding in report.findings} == {("stale: code", "torch was ")}
    assert "numpy is not installed here: its version was not compared" in report.notes


def test_an_edited_manifest_is_refused(results: Results, here: Path):
    manifest = results / "sft/metrics.manifest.json"
    manifest.write_text(manifest.read_text().replace('"seed": 3', '"seed": 4'))
    assert take(results, here).refused.keys() == AFTER_SFT


def test_a_file_that_is_there_with_other_bytes_is_left(results: Results, here: Path):
    mine = here / "data/splits/rl.parquet"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    adoption = take(results, here)
    assert adoption.adopted == ["data/raw.manifest.json"]
    assert "is there with other bytes" in adoption.refused["data/splits/demonstrations.manifest.json"]
    assert mine.read_text() == "mine"


def test_a_directory_is_not_adopted_into_itself(results: Results):
    with pytest.raises(UserError, match="give the directory that they come from"):
        take(results, results.root)
