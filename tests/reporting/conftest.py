import shutil

import pytest
from fabricate import build, fabricate

from stepcredit.config_files import load_config


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory):
    """A made-up run with its tables, claims, figures and report; tests must not change it."""
    root = tmp_path_factory.mktemp("run")
    build(root, fabricate(root))
    return root


@pytest.fixture
def raw_run(tmp_path):
    """The raw files of a made-up run, to be changed at will, and its configuration."""
    return tmp_path, fabricate(tmp_path)


@pytest.fixture
def rebuilt(finished_run, tmp_path):
    """A second build from the same raw files."""
    root = tmp_path / "again"
    shutil.copytree(finished_run, root)
    for made in ("tables", "figures"):
        shutil.rmtree(root / made)
    build(root, load_config(root / "config.yaml"))
    return root
