from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from stepcredit.provenance.digest import code_digest
from stepcredit.provenance.errors import UserError
from stepcredit.provenance.manifest import ManifestError, read_manifest, recorded_path
from stepcredit.provenance.record import record
from stepcredit.settings.data import SplitSettings


def run(root: Path, **more: Any) -> Path:
    """A stage that upper-cases a file and copies it into a directory."""
    (root / "config.yaml").touch()
    source = root / "data" / "a.txt"
    source.parent.mkdir(exist_ok=True)
    source.write_text("a")
    manifest = root / "copy" / "manifest.json"
    with record("copy", manifest, modules=["rollouts"], inputs=[source], **more) as files:
        copies = root / "copy" / "files"
        copies.mkdir(parents=True, exist_ok=True)
        (copies / "1.txt").write_text("A")
        (copies / "2.txt").write_text("A")
        files.outputs.append(copies)
    return manifest


def test_manifest_says_what_was_made_from_what_by_which_code(tmp_path: Path):
    manifest = read_manifest(run(tmp_path, settings=SplitSettings(heldout=7), seed=5))
    upper, lower = (hashlib.sha256(text).hexdigest() for text in (b"A", b"a"))
    assert manifest.stage == "copy"
    assert manifest.root == ".."
    assert manifest.inputs == {"data/a.txt": lower}
    assert manifest.outputs == {"copy/files/1.txt": upper, "copy/files/2.txt": upper}
    assert manifest.settings == {"validation": 256, "heldout": 7, "rl_share": 0.4}
    assert manifest.seed == 5
    assert manifest.code.modules == ["rollouts"]
    assert manifest.code.digest == code_digest("rollouts")
    assert manifest.versions["python"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}")
    assert "numpy" in manifest.versions
    assert manifest.volatile.machine.cores >= 1
    assert manifest.volatile.peak_memory_mib > 1
    assert manifest.volatile.started.endswith("+00:00")


def test_two_runs_differ_in_nothing_but_what_is_volatile(tmp_path: Path):
    texts = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        texts.append(run(tmp_path / name, settings={"b": [1, 2.5], "a": None}, seed=0).read_text())
    first, second = (text[: text.index('"volatile"')] for text in texts)
    assert first == second
    assert list(json.loads(texts[0]))[-1] == "volatile"


def test_a_failed_stage_leaves_no_manifest(tmp_path: Path):
    manifest = tmp_path / "manifest.json"
    with pytest.raises(ZeroDivisionError), record("copy", manifest, modules=["rollouts"]):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_a_stage_that_forgets_an_output_is_named(tmp_path: Path):
    with (
        pytest.raises(FileNotFoundError, match=r"copy: ended without writing .*x\.csv"),
        record("copy", tmp_path / "manifest.json", modules=["rollouts"], outputs=[tmp_path / "x.csv"]),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_missing_input_is_refused_before_the_work_begins(tmp_path: Path):
    with (
        pytest.raises(UserError, match=r"copy: no such input: .*absent\.txt"),
        record("copy", tmp_path / "m.json", modules=["rollouts"], inputs=[tmp_path / "absent.txt"]),
    ):
        raise AssertionError("the work began")


def test_an_input_is_recorded_as_it_was_when_the_work_began(tmp_path: Path):
    source = tmp_path / "a"
    source.write_text("before")
    with record("copy", tmp_path / "manifest.json", modules=["rollouts"], inputs=[source]):
        source.write_text("after")
    assert read_manifest(tmp_path / "manifest.json").inputs == {"a": hashlib.sha256(b"before").hexdigest()}


def test_paths_are_relative_to_the_results_directory_and_told_from_it_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    root = Path("results")
    assert recorded_path(Path("results/sft/model"), root) == "sft/model"
    assert recorded_path(tmp_path / "results" / "x", root) == "x"
    assert recorded_path(Path("mine/data.jsonl"), root) == "../mine/data.jsonl"
    assert recorded_path(Path("/models/config.json"), root) == "/models/config.json"


def test_a_manifest_without_a_configuration_above_it_is_told_from_its_own_directory(tmp_path: Path):
    output = tmp_path / "x"
    with record("alone", tmp_path / "manifest.json", modules=["rollouts"], outputs=[output]):
        output.touch()
    manifest = read_manifest(tmp_path / "manifest.json")
    assert (manifest.root, list(manifest.outputs)) == (".", ["x"])


@pytest.mark.parametrize("old_new", [('"seed": 5', '"seed": 6'), ('"host": "', '"host": "x'), ("{\n", "{ \n")])
def test_an_edited_manifest_is_refused(tmp_path: Path, old_new: tuple[str, str]):
    path = run(tmp_path, seed=5)
    read_manifest(path)
    path.write_text(path.read_text().replace(*old_new, 1))
    with pytest.raises(ManifestError, match="was edited after the stage wrote it"):
        read_manifest(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[1]", "is not a manifest"),
        ('{"schema": 2}', r"schema: Input should be 1"),
        ("\xff", "not JSON"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_manifest_is_refused_with_the_reason(tmp_path: Path, text: str, message: str):
    path = tmp_path / "manifest.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ManifestError, match=message):
        read_manifest(path)
    with pytest.raises(ManifestError, match="cannot be read"):
        read_manifest(tmp_path)
