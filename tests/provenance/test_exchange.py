"""A run as RO-Crate and its data as Croissant: complete, verifiable, and valid for whoever checks independently."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from made_results import Results

from stepcredit.provenance.crate import METADATA, PROFILES, write_crate
from stepcredit.provenance.croissant import COLUMNS, FILES, describe_data
from stepcredit.provenance.errors import UserError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def finished(results: Results) -> Results:
    def write() -> None:
        (results / "report.html").write_text("<!doctype html><title>Report</title>")

    results.stage("report", ["eval/sft/step0.parquet"], ["report.html"], write)
    return results


@pytest.fixture
def crate(finished: Results, tmp_path: Path) -> Path:
    """The crate, unpacked."""
    write_crate(finished.root, ROOT, tmp_path / "crate.zip", "0.1.0")
    with zipfile.ZipFile(tmp_path / "crate.zip") as archive:
        archive.extractall(tmp_path / "crate")
    return tmp_path / "crate"


def graph(crate: Path) -> dict[str, Any]:
    return {entity["@id"]: entity for entity in json.loads((crate / METADATA).read_text())["@graph"]}


def references(value: Any) -> set[str]:
    """Every identifier that an entity refers to."""
    if isinstance(value, dict):
        return {value["@id"]} if value.keys() == {"@id"} else set().union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


def test_every_file_is_described_with_its_hash_and_nothing_else_is(crate: Path):
    files = {path.relative_to(crate).as_posix(): path for path in crate.rglob("*") if path.is_file()}
    entities = graph(crate)
    described = {name for name, entity in entities.items() if "File" in entity["@type"]}
    assert described == files.keys() - {METADATA}
    assert "results/sft/model/model.safetensors" in described
    for name in described:
        assert entities[name]["sha256"] == hashlib.sha256(files[name].read_bytes()).hexdigest()
    assert references(entities["./"]["hasPart"]) == described


def test_the_run_leads_from_the_configuration_by_the_workflow_to_every_result(crate: Path):
    entities = graph(crate)
    run = entities["#run"]
    assert run["instrument"] == {"@id": "Snakefile"} == entities["./"]["mainEntity"]
    assert run["object"] == {"@id": "results/config.yaml"}
    assert {"results/report.html", "results/report.manifest.json"} <= references(run["result"])
    assert references(entities["./"]["conformsTo"]) == set(PROFILES)
    assert run["startTime"] <= run["endTime"]
    outside = {
        "https://snakemake.readthedocs.io",
        "https://w3id.org/ro/crate/1.1",
        "https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE",
    }
    assert {
        name for entity in entities.values() for name in references(list(entity.values()))
    } - entities.keys() == outside


def test_an_unpacked_crate_passes_the_audit(crate: Path):
    assert Results(crate / "results").audit().verdict == "ok"


def test_the_same_run_gives_the_same_bytes(finished: Results, tmp_path: Path):
    for name in ("one.zip", "two.zip"):
        write_crate(finished.root, ROOT, tmp_path / name, "0.1.0")
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


def test_a_run_without_a_report_or_a_workflow_is_refused(results: Results, finished: Results, tmp_path: Path):
    with pytest.raises(UserError, match="has no Snakefile; name the directory"):
        write_crate(finished.root, tmp_path, tmp_path / "crate.zip", "0.1.0")
    (results / "report.manifest.json").unlink()
    with pytest.raises(UserError, match="holds no finished run"):
        write_crate(results.root, ROOT, tmp_path / "crate.zip", "0.1.0")
    assert not (tmp_path / "crate.zip").exists()


def test_the_command_refuses_a_run_that_the_audit_faults(finished: Results, tmp_path: Path):
    from typer.testing import CliRunner

    from stepcredit.cli.exchange import commands

    (finished / "report.html").write_text("edited")
    arguments = ["crate", str(finished.root), "--out", str(tmp_path / "crate.zip"), "--workflow", str(ROOT)]
    result = CliRunner().invoke(commands, arguments)
    assert isinstance(result.exception, UserError)
    assert "`stepcredit audit" in str(result.exception)
    assert not (tmp_path / "crate.zip").exists()


def test_an_independent_validator_takes_the_crate(crate: Path):
    """Needs `roc-validator`, and the network, as it fetches RO-Crate's JSON-LD context."""
    services = pytest.importorskip("rocrate_validator.services", reason="roc-validator is not installed")
    models = pytest.importorskip("rocrate_validator.models")
    import requests

    try:
        requests.get("https://w3id.org/ro/crate/1.1/context", timeout=10).raise_for_status()
    except requests.RequestException as error:
        pytest.skip(f"the context of RO-Crate cannot be fetched: {error}")
    for profile in ("process-run-crate", "workflow-ro-crate", "workflow-run-crate"):
        checked = services.validate(
            services.ValidationSettings(
                rocrate_uri=str(crate), profile_identifier=profile, requirement_severity=models.Severity.REQUIRED
            )
        )
        assert not checked.has_issues(), [issue.message for issue in checked.get_issues()]


# -- Croissant ---------------------------------------------------------------------------------------------


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The data directory of a run of the data stages."""
    from typer.testing import CliRunner

    from stepcredit.cli.data import commands
    from stepcredit.settings.data import DataSettings

    directory = tmp_path / "results/data"
    sizes = {"synthetic": {"demonstrations": 300}, "splits": {"validation": 20, "heldout": 50}}
    settings = DataSettings.model_validate(sizes).canonical_json()
    raw, clean, splits = directory / "raw.parquet", directory / "clean.parquet", directory / "splits"
    manifest = splits / "manifest.json"
    for arguments in (
        ["ingest", "--settings", settings, "--out", raw, "--manifest", directory / "raw.manifest.json"],
        ["clean", "--in", raw, "--out", clean, "--funnel", directory / "funnel.csv"],
        ["split", "--settings", settings, "--clean", clean, "--out-dir", splits, "--manifest", manifest],
    ):
        result = CliRunner().invoke(commands, [str(argument) for argument in arguments])
        assert result.exit_code == 0, repr(result.exception)
    return directory


def test_every_file_and_column_of_the_data_is_described(data: Path):
    import pyarrow.parquet as pq

    described = describe_data(data, "0.1.0")
    for file in described["distribution"]:
        assert file["sha256"] == hashlib.sha256((data / file["contentUrl"]).read_bytes()).hexdigest()
    records = {records["name"]: records for records in described["recordSet"]}
    assert records.keys() == FILES.keys()
    for name, (path, _, _) in FILES.items():
        columns = [field["source"]["extract"]["column"] for field in records[name]["field"]]
        assert columns == pq.read_schema(data / path).names
        assert set(columns) <= COLUMNS.keys()
    assert described["license"].endswith("/MIT")


def test_absent_data_is_refused(tmp_path: Path):
    with pytest.raises(UserError, match=r"clean\.parquet.*no such file; the workflow's data stages make it"):
        describe_data(tmp_path, "0.1.0")


def test_an_independent_reader_takes_the_metadata_and_finds_the_rows(data: Path):
    croissant = pytest.importorskip("mlcroissant", reason="mlcroissant is not installed")
    import pyarrow.parquet as pq

    (data / "croissant.json").write_text(json.dumps(describe_data(data, "0.1.0")))
    dataset = croissant.Dataset(jsonld=data / "croissant.json")
    assert dataset.metadata.issues.errors == set()
    for name, (path, _, _) in FILES.items():
        assert len(list(dataset.records(name))) == pq.read_metadata(data / path).num_rows
