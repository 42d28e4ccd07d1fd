"""What an audit finds in a results directory that was broken on purpose, and that it finds nothing else."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepcredit.provenance.digest import PACKAGE_ROOT
from stepcredit.provenance.findings import AuditContext, Finding
from stepcredit.provenance.manifest import Manifest, read_manifest

MODEL = "sft/model/model.safetensors"
METRICS = "sft/metrics.parquet"
EVALUATION = "eval/sft/step0.parquet"


def test_all_is_well_with_what_the_stages_wrote(results: Any):
    report = results.audit(current_settings=settings_now({}))
    assert report.findings == []
    assert report.notes == []
    assert report.verdict == "ok"
    assert report.manifests == 4
    assert [artifact.path for artifact in report.artifacts] == [
        "data/raw.parquet",
        "data/splits/demonstrations.parquet",
        "data/splits/heldout.parquet",
        "data/splits/rl.parquet",
        "data/splits/validation.parquet",
        EVALUATION,
        METRICS,
        "sft/model/config.json",
        MODEL,
    ]
    model = report.artifacts[-1]
    assert (model.stage, model.seed, model.verdict) == ("train-sft", 3, "ok")
    assert model.size == (results / MODEL).stat().st_size
    assert model.remake == f"snakemake --cores all --forcerun {results.root}/sft/metrics.manifest.json"


def test_a_flipped_byte_names_its_file_and_no_other_20_of_20(results: Any):
    generator = random.Random(0)
    files = sorted(path for path in results.root.rglob("*") if path.suffix in (".parquet", ".json", ".safetensors"))
    named = 0
    for _ in range(20):
        path = generator.choice(files)
        whole = path.read_bytes()
        broken = bytearray(whole)
        broken[generator.randrange(len(whole))] ^= 1 << generator.randrange(8)
        path.write_bytes(broken)
        named += results.found() == {path.relative_to(results.root).as_posix(): "tampered"}
        path.write_bytes(whole)
    assert named == 20
    assert results.found() == {}


@pytest.mark.parametrize("name", [MODEL, METRICS, EVALUATION, "data/splits/heldout.parquet", "sft/model/config.json"])
def test_a_file_that_is_cut_off_emptied_or_replaced_by_a_directory_is_named(results: Any, name: str):
    whole = (results / name).read_bytes()
    for broken in (whole[:-1], whole[: len(whole) // 2], b""):
        (results / name).write_bytes(broken)
        assert results.found() == {name: "tampered"}
    (results / name).unlink()
    assert results.found() == {name: "missing"}
    (results / name).symlink_to("nowhere")
    assert results.found() == {name: "missing"}
    (results / name).unlink()
    (results / name).mkdir()
    assert results.found() == {name: "tampered"}
    (results / name / "inside").touch()
    assert results.found() == {name: "tampered", f"{name}/inside": "orphan"}


def test_a_pipe_in_place_of_a_file_does_not_hang_the_audit(results: Any):
    (results / METRICS).unlink()
    os.mkfifo(results / METRICS)
    assert results.found() == {METRICS: "tampered"}


def test_the_repair_of_a_damaged_file_forces_the_job_that_made_it(results: Any):
    (results / MODEL).unlink()
    (finding,) = results.audit(snakemake="snakemake -c1").findings
    assert finding.repair == f"snakemake -c1 --forcerun {results.root}/sft/metrics.manifest.json"


def test_a_file_that_no_manifest_accounts_for_is_an_orphan(results: Any):
    (results / "sft/model/old model.bin").touch()
    (results / ".metrics-x1y2.parquet").touch()
    (results / "tables").mkdir()
    (results / "tables/by hand.csv").touch()
    report = results.audit()
    assert {finding.verdict for finding in report.findings} == {"orphan"}
    assert [finding.path for finding in report.findings] == [
        ".metrics-x1y2.parquet",
        "sft/model/old model.bin",
        "tables/by hand.csv",
    ]
    assert report.findings[1].repair == f"rm '{results.root}/sft/model/old model.bin'"


def test_logs_benchmarks_states_and_snakemakes_own_files_need_no_manifest(results: Any):
    for name in (
        "logs/rl/x",
        "benchmarks/rl/x.tsv",
        "state/rl/manifest.json",
        ".snakemake/log/x",
        "sft/model/.snakemake_timestamp",
        "train.log",
    ):
        (results / name).parent.mkdir(parents=True, exist_ok=True)
        (results / name).touch()
    assert results.found() == {}


@pytest.mark.parametrize("seconds", [0, 4_000_000_000], ids=["1970", "2096"])
def test_clocks_that_are_wrong_change_nothing(results: Any, seconds: int):
    for path in sorted(results.root.rglob("*"))[::2]:
        os.utime(path, (seconds, seconds))
    assert results.audit().findings == []


def test_another_results_directory_inside_is_left_to_its_own_audit(results: Any):
    shutil.copytree(results.root, results / "smoke")
    (results / "smoke" / MODEL).unlink()
    report = results.audit()
    assert report.findings == []
    assert "smoke: a results directory of its own, audit it by itself" in report.notes


def test_a_moved_results_directory_still_verifies(results: Any, tmp_path: Path):
    moved = tmp_path / "elsewhere" / "archive"
    shutil.move(results.root, moved)
    results.root = moved
    assert results.found() == {}


def test_a_part_of_the_results_can_be_audited_and_a_run_without_configuration_as_a_whole(
    results: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(results.root.parent)
    results.root = Path("results")
    (results / "config.yaml").unlink()
    results.stage("late", ["sft/model"], ["late/x.json"], lambda: write_text(results / "late/x.json", "{}"))
    assert results.found() == {}
    edit(results / "sft/model/config.json", "2", "3")
    assert results.found() == {"sft/model/config.json": "tampered"}
    results.root /= "late"
    assert results.found() == {"x.json": "stale: input"}


def test_checkpoints_linked_from_the_state_are_verified_through_the_link(results: Any):
    (results / "state").mkdir()
    shutil.move(results / "sft/model", results / "state/model")
    (results / "sft/model").symlink_to("../state/model")
    assert results.found() == {}
    (results / "state/model/config.json").write_text("{}")
    assert results.found() == {"sft/model/config.json": "tampered"}


def test_a_damaged_manifest_is_named_alone_and_its_outputs_are_no_orphans(results: Any):
    path = results / "sft/metrics.manifest.json"
    for text in ("{", "{}", "", path.read_text().replace('"train-sft"', '"train-rl"')):
        path.write_text(text)
        assert results.found() == {"sft/metrics.manifest.json": "tampered"}
    path.unlink()
    path.mkdir()
    assert set(results.found().values()) == {"orphan"}


def test_a_removed_manifest_leaves_orphans(results: Any):
    (results / "sft/metrics.manifest.json").unlink()
    assert results.found() == {
        METRICS: "orphan",
        "sft/model/config.json": "orphan",
        MODEL: "orphan",
    }


# -- stale ----------------------------------------------------


def test_code_that_changed_since_makes_its_outputs_stale_and_a_comment_does_not(results: Any, tmp_path: Path):
    package = tmp_path / "stepcredit"
    shutil.copytree(PACKAGE_ROOT, package)
    results.stage(
        "tabulate",
        [EVALUATION],
        ["tables/x.json"],
        lambda: write_text(results / "tables/x.json", "{}"),
        modules=["countdown.puzzle"],
    )
    edit(package / "rollouts.py", '"""What the sampler', '# a comment\n"""What the sampler')
    assert results.found(package_root=package) == {}
    edit(package / "rollouts.py", "finished: bool", "finished: int")
    found = results.found(package_root=package)
    assert set(found.values()) == {"stale: code"}
    assert len(found) == 9
    assert "tables/x.json" not in found
    (package / "rollouts.py").unlink()
    assert results.found(package_root=package) == found
    report = results.audit(package_root=package)
    assert 'stepcredit has no module "rollouts"' in report.findings[0].detail


def settings_now(changes: dict[str, Any]) -> Any:
    def current(manifest: Manifest) -> dict[str, Any]:
        return {**manifest.settings, **(changes if manifest.stage == "train-sft" else {})}

    return current


def test_settings_that_changed_since_make_that_stages_outputs_stale(results: Any):
    report = results.audit(current_settings=settings_now({"sft": {"steps": 9}, "seed": 0}))
    assert {(finding.path, finding.verdict) for finding in report.findings} == {
        (path, "stale: params") for path in (METRICS, MODEL, "sft/model/config.json")
    }
    assert report.findings[0].detail == "sft.learning_rate was 0.005, is unset; sft.steps was 4, is 9"


def test_settings_that_nobody_knows_are_noted_not_guessed(results: Any):
    assert "settings were not compared: no configuration was given" in results.audit().notes
    report = results.audit(current_settings=lambda manifest: None)
    assert report.verdict == "ok"
    assert "settings of train-sft were not compared" in report.notes


def test_an_input_made_anew_since_makes_what_was_made_from_it_stale(results: Any):
    from_rows = [{"nums": [1, 2, 3], "target": 6, "query": "other", "response": ""}]
    results.stage("make-raw", [], ["data/raw.parquet"], lambda: results.write("data/raw.parquet", from_rows))
    report = results.audit()
    assert {finding.path for finding in report.findings} == {
        f"data/splits/{name}.parquet" for name in ("demonstrations", "heldout", "rl", "validation")
    }
    assert {finding.verdict for finding in report.findings} == {"stale: input"}
    assert report.findings[0].detail == "data/raw.parquet was made anew by make-raw since"
    assert report.findings[0].repair.endswith("--forcerun " + str(results / "data/splits/demonstrations.manifest.json"))


def test_an_input_that_no_stage_makes_is_compared_with_the_file(results: Any, tmp_path: Path):
    outside = tmp_path / "mine.jsonl"
    outside.write_text("1")
    target = "tables/x.json"
    results.stage("tabulate", [str(outside)], [target], lambda: write_text(results / target, "{}"))
    assert results.found() == {}
    outside.write_text("2")
    assert results.found() == {target: "stale: input"}
    outside.unlink()
    report = results.audit()
    assert report.findings == []
    assert f"{outside}: an input from outside the results that is not here, not compared" in report.notes


# -- content ----------------------------------------------------


def redo(results: Any, name: str, rows: list[dict[str, Any]]) -> dict[str, str]:
    """Let a file's stage write other rows, with a manifest that fits; what the audit then calls invalid."""
    (manifest,) = (
        manifest for manifest in map(read_manifest, results.root.rglob("*.manifest.json")) if name in manifest.outputs
    )
    results.stage(manifest.stage, list(manifest.inputs), list(manifest.outputs), lambda: results.write(name, rows))
    report = results.audit(
        config={"evaluation": {"samples": 2}, "data": {"splits": {"heldout": 3}}, "sft": {"steps": 4}}
    )
    return {finding.path: finding.detail for finding in report.findings if finding.verdict == "invalid"}


def rows_of(results: Any, name: str) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = pq.ParquetFile(results / name).read().to_pylist()
    return rows


def test_an_evaluation_that_lacks_a_row_or_repeats_one_or_holds_another_puzzle_is_invalid(results: Any):
    rows = rows_of(results, EVALUATION)
    assert redo(results, EVALUATION, rows) == {}
    assert redo(results, EVALUATION, rows[:-1]) == {EVALUATION: "5 rows, not 3 heldout puzzles x 2 samples = 6"}
    assert redo(results, EVALUATION, [*rows[:-1], rows[0]]) == {
        EVALUATION: "puzzle 2 has no sample 1, so another row is there twice or does not belong"
    }
    assert redo(results, EVALUATION, [*rows[:-1], rows[-1] | {"target": 13}]) == {
        EVALUATION: "1 rows hold another puzzle than the heldout split has at their index"
    }


def test_a_validation_of_the_sweep_is_held_against_the_validation_split(results: Any):
    name = "sweep/lr0.001/validation.parquet"
    row = rows_of(results, EVALUATION)[0] | {"nums": [6, 5], "target": 11}
    results.stage("validate", [], [name], lambda: results.write(name, [row]))
    assert results.found(config={"sweep": {"samples": 1}}) == {}
    report = results.audit(config={"sweep": {"samples": 2}})
    assert report.findings[0].detail == "1 rows, not 1 validation puzzles x 2 samples = 2"


def test_a_held_out_puzzle_that_another_split_holds_in_another_order_is_found(results: Any):
    rows = [{"nums": [3, 1, 2], "target": 6}, {"nums": [7, 9], "target": 16}]
    assert redo(results, "data/splits/rl.parquet", rows) == {
        "data/splits/heldout.parquet": "1 puzzles are in data/splits/rl.parquet too"
    }


def test_a_puzzle_twice_in_a_split_and_a_split_of_another_size_are_found(results: Any):
    rows = [{"nums": [5, 6], "target": 11}, {"nums": [6, 5], "target": 11}]
    assert redo(results, "data/splits/validation.parquet", rows) == {
        "data/splits/validation.parquet": "1 puzzles are repeated, up to the order of the numbers"
    }
    found = results.audit(config={"data": {"splits": {"heldout": 4}}}).findings
    assert "3 puzzles; data.splits.heldout is 4" in [finding.detail for finding in found]


def test_a_run_log_with_a_gap_or_too_few_steps_is_invalid(results: Any):
    rows = rows_of(results, METRICS)
    assert redo(results, METRICS, [*rows[:2], rows[3]]) == {METRICS: "its steps are not 1, 2, 3 and so on, each once"}
    assert redo(results, METRICS, rows[:3]) == {METRICS: "3 steps; the configuration asks for 4"}


def test_a_table_with_another_schema_is_invalid_and_read_no_further(results: Any):
    rows = [{"puzzle": row["puzzle"], "sample": row["sample"]} for row in rows_of(results, EVALUATION)]
    found = redo(results, EVALUATION, rows)
    assert list(found) == [EVALUATION]
    assert found[EVALUATION].startswith("has no column ")


@pytest.mark.parametrize("name", ["x.parquet", "x.safetensors", "x.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"PAR1", b"\xff" * 64, b"\x02\0\0\0\0\0\0\0[]", b"8\0\0\0\0\0\0\0{}"])
def test_a_file_that_was_recorded_broken_is_invalid(results: Any, name: str, content: bytes):
    results.stage("odd", [], [name], lambda: (results / name).write_bytes(content))
    (finding,) = results.audit().findings
    assert (finding.path, finding.verdict) == (name, "invalid")
    assert finding.detail.startswith(f"cannot be read as {name[2:]}")


def test_checks_from_other_floors_run_and_one_that_fails_is_a_finding(results: Any):
    def rounding(context: AuditContext) -> Iterator[Finding]:
        assert context.readable(EVALUATION)
        yield context.invalid(EVALUATION, "its mean is not the table's")

    def fragile(context: AuditContext) -> Iterator[Finding]:
        raise KeyError("pass@1")

    report = results.audit(checks=[rounding, fragile])
    assert [(finding.path, finding.detail) for finding in report.findings] == [
        (".", "fragile could not look at it (KeyError: 'pass@1')"),
        (EVALUATION, "its mean is not the table's"),
    ]
    assert {artifact.path: artifact.verdict for artifact in report.artifacts}[EVALUATION] == "invalid"


def test_checks_do_not_read_what_is_known_to_be_broken(results: Any):
    (results / EVALUATION).write_bytes(b"")
    seen: list[bool] = []
    results.audit(checks=[lambda context: seen.append(context.readable(EVALUATION)) or []])
    assert seen == [False]


# -- the report ----------------------------------------------------


def test_the_worst_verdict_comes_first_and_is_the_artifacts(results: Any):
    (results / METRICS).unlink()
    report = results.audit(current_settings=settings_now({"seed": 1}))
    assert [finding.verdict for finding in report.findings] == ["missing", *["stale: params"] * 3]
    verdicts = {artifact.path: artifact.verdict for artifact in report.artifacts}
    assert verdicts[METRICS] == "missing"
    assert verdicts[MODEL] == "stale: params"


def test_the_report_is_json_whatever_the_file_names_are(results: Any):
    odd = os.fsencode(results.root) + b"/\xff.csv"
    with open(odd, "wb"):
        pass
    report = json.loads(results.audit().to_json())
    assert report["verdict"] == "failed"
    assert [finding["verdict"] for finding in report["findings"]] == ["orphan"]
    assert {"path", "stage", "seed", "manifest", "sha256", "size", "verdict", "remake"} == set(report["artifacts"][0])


def write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
