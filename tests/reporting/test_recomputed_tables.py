"""The audit makes the tables again from the raw files."""

import hashlib

import pytest
from fabricate import write_config
from typer.testing import CliRunner

from stepcredit.cli import app
from stepcredit.cli.recomputed import TABLES, check_tables
from stepcredit.provenance.findings import AuditContext
from stepcredit.provenance.manifest import read_manifest
from stepcredit.reporting.settings import TablesSettings


@pytest.fixture
def tables(raw_run):
    """A made-up run with tables and their manifest."""
    root, config = raw_run
    write_config(root / "config.yaml", config)
    settings = TablesSettings.from_config(config).canonical_json()
    arguments = ["tables", "--results", str(root), "--settings", settings, "--out-dir", str(root / "tables")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "tables/arms.csv" in read_manifest(root / TABLES).outputs
    return root


def found(root, manifest):
    context = AuditContext(root, {TABLES: manifest}, {}, "snakemake --cores all")
    return [finding.path for finding in check_tables(context)]


def test_tables_that_follow_from_the_raw_files_are_well(tables):
    assert found(tables, read_manifest(tables / TABLES)) == []


def test_a_forged_number_is_found_though_its_hash_was_forged_too(tables):
    table = tables / "tables/arms.csv"
    header, first, *rest = table.read_text().splitlines(keepends=True)
    arm, step, metric, mean, *interval = first.split(",")
    table.write_text("".join([header, ",".join([arm, step, metric, str(float(mean) + 0.01), *interval]), *rest]))
    manifest = read_manifest(tables / TABLES)
    forged = {**manifest.outputs, "tables/arms.csv": hashlib.sha256(table.read_bytes()).hexdigest()}
    assert found(tables, manifest.model_copy(update={"outputs": forged})) == ["tables/arms.csv"]


def test_a_run_without_tables_is_left_to_the_other_checks(tables):
    context = AuditContext(tables, {}, {}, "snakemake --cores all")
    assert list(check_tables(context)) == []
