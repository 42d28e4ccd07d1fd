"""The audit with the real vLLM on a tiny random model, and what it does when an engine takes its process down."""

import json
from pathlib import Path

import pandas as pd
import pytest
import torch

from stepcredit.cli import app
from stepcredit.modeling.model import build_model, save_model
from stepcredit.modeling.tokenizer import TextCodec, build_tokenizer
from stepcredit.provenance.errors import UserError
from stepcredit.settings.model import ModelSettings
from stepcredit.settings.parity import ParityAuditSettings
from stepcredit.studies.parity import audit
from stepcredit.studies.parity.outcome import EngineRefusedError
from stepcredit.studies.parity.settings import SETTINGS
from stepcredit.studies.parity.worker import Request, row

SMALL = ModelSettings(
    hidden_size=64, layers=2, intermediate_size=64, attention_heads=2, key_value_heads=1, head_dim=32, max_positions=512
)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    directory = tmp_path_factory.mktemp("parity") / "model"
    codec = TextCodec(build_tokenizer(99))
    model = build_model(SMALL, codec, seed=0)
    with torch.no_grad():
        model.get_input_embeddings().weight.mul_(6)  # as peaked as a trained model: temperature must matter
    save_model(model, codec, directory)
    return directory


def command(*arguments):
    from typer.testing import CliRunner

    done = CliRunner().invoke(app, ["parity", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_audit_tells_right_from_wrong_settings(checkpoint, tmp_path):
    names = [
        *("processed_t0.8", "raw_t0.8", "processed_top_p", "processed_top_p_plain_trainer", "update_reset"),
        *("update_cache_kept", "update_tied_head_stale", "both_bf16"),
    ]
    small = ParityAuditSettings(tokens=400, max_new_tokens=32).model_dump_json()
    chosen = [argument for name in names for argument in ("--setting", name)]
    out = tmp_path / "rows.parquet"
    rows = json.loads(
        command("--model", checkpoint, "--settings", small, "--json", "--out", out, "--workers", 1, *chosen)
    )
    found = {row["setting"]: row for row in rows}
    assert found.keys() == set(names)
    assert pd.read_parquet(out)["verdict"].tolist() == [row["verdict"] for row in rows]
    assert audit.surprises(rows) == []
    for name in ("processed_t0.8", "processed_top_p", "update_reset"):
        assert found[name]["worst"] < 1e-4, name
        assert found[name]["verdict"] == "exact"
        assert found[name]["after_repair"] is None
    for name in ("raw_t0.8", "processed_top_p_plain_trainer", "update_cache_kept", "update_tied_head_stale"):
        assert found[name]["verdict"] in ("biased", "broken"), name
        assert found[name]["after_repair"] == "exact"  # the repaired objective no longer sees it
    assert found["raw_t0.8"]["mean_ratio"] > 1 + 2 * found["raw_t0.8"]["ratio_error"]
    assert found["update_cache_kept"]["note"] == "192 of 200 prompt tokens came from the cache"
    assert found["both_bf16"]["verdict"] == "numerical noise"


def test_no_checkpoint_is_a_users_mistake(tmp_path):
    with pytest.raises(UserError, match=r"no checkpoint to audit: it has no config\.json"):
        command("--model", tmp_path)


def test_a_setting_that_ends_its_process_is_broken_and_the_rest_goes_on(tmp_path, monkeypatch):
    def dies_on_nvfp4(request: Path, out: Path, log: Path) -> int:
        names = json.loads(request.read_text())["names"]
        lines = []
        for name in names:
            lines.append({"started": name})
            if name == "kv_nvfp4":
                break
            lines.append({"setting": name, "verdict": "exact"})
        out.write_text("".join(json.dumps(line) + "\n" for line in lines))
        log.write_text("Segmentation fault")
        return 139 if lines[-1] == {"started": "kv_nvfp4"} else 0

    monkeypatch.setattr(audit, "_run_worker", dies_on_nvfp4)
    names = ["processed_t1.0", "kv_nvfp4", "raw_t1.0"]
    request = Request(model=tmp_path, updated=tmp_path, names=names, puzzles=None, audit=ParityAuditSettings())
    rows = audit._measured(tmp_path / "worker", request)
    assert {name: row["verdict"] for name, row in rows.items()} == {
        "processed_t1.0": "exact",
        "kv_nvfp4": "broken",
        "raw_t1.0": "exact",
    }
    assert "status 139: Segmentation fault" in rows["kv_nvfp4"]["note"]


@pytest.mark.parametrize(("error", "verdict"), [(EngineRefusedError, "refused"), (ValueError, "broken")])
def test_only_an_engine_that_does_not_start_counts_as_refused(error, verdict):
    class Fails:
        def run(self, setting):
            raise error("no such  cache")

    found = row(SETTINGS["raw_t1.0"], Fails)
    assert found["verdict"] == verdict
    assert "no such cache" in found["note"]
    assert found["worst"] is None


def test_a_worker_that_dies_before_any_setting_is_an_error(tmp_path, monkeypatch):
    def dies(request: Path, out: Path, log: Path) -> int:
        log.write_text("no module")
        return 1

    monkeypatch.setattr(audit, "_run_worker", dies)
    request = Request(model=tmp_path, updated=tmp_path, names=["raw_t1.0"], puzzles=None, audit=ParityAuditSettings())
    with pytest.raises(RuntimeError, match="ended with status 1"):
        audit._measured(tmp_path / "worker", request)
