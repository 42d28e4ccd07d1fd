"""Model cards: they say what training recorded and what the samples give, and their own code loads the model."""

import os
import re
import subprocess
import sys

import pytest
import yaml
from typer.testing import CliRunner

from stepcredit import jobs
from stepcredit.cli import app
from stepcredit.modeling.model import build_model, save_model
from stepcredit.modeling.tokenizer import TextCodec, build_tokenizer
from stepcredit.provenance.manifest import read_manifest
from stepcredit.provenance.record import record
from stepcredit.reporting.measures import measures
from stepcredit.reporting.numbers import bounds, number
from stepcredit.reporting.raw import read_evaluation
from stepcredit.reporting.settings import TablesSettings
from stepcredit.settings.model import ModelSettings

SMALL = ModelSettings(
    hidden_size=32, layers=2, intermediate_size=64, attention_heads=2, key_value_heads=1, head_dim=32, max_positions=128
)


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """The results directory of a made-up run with checkpoints of random weights, its models laid out, its config."""
    from fabricate import fabricate

    results = tmp_path_factory.mktemp("results")
    config = fabricate(results, {"evaluation": {"steps": [0, 10, 40], "max_new_tokens": 40}})
    codec = TextCodec(build_tokenizer(100))
    model = build_model(SMALL, codec, seed=0)
    _stage(results / "data/raw.manifest.json", "ingest", config.data)
    save_model(model, codec, results / "sft/model")
    _stage(results / "sft/manifest.json", "train-sft", jobs.sft_job(config), seed=config.sft.seed)
    for arm in config.arms:
        for seed in config.seeds_of(arm):
            directory = results / f"rl/{arm}/seed{seed}"
            save_model(model, codec, directory / "checkpoints/step40")
            settings = {**jobs.rl_job(config, arm).model_dump(mode="json"), "learning_rate": 1.5e-4}
            _stage(directory / "manifest.json", "train-rl", settings, seed=seed)
    settings = TablesSettings.from_config(config)
    options = ["--results", results, "--settings", settings.canonical_json(), "--out-dir", results / "models"]
    done = CliRunner().invoke(app, ["model-cards", *map(str, options), "--manifest", f"{results}/models.manifest.json"])
    assert done.exit_code == 0, done.output
    return results, config


def _stage(manifest, stage, settings, seed=None):
    with record(stage, manifest, modules=["seeds"], settings=settings, seed=seed):
        pass


def card(results, name):
    """(front matter, text) of a card."""
    _, front, text = (results / "models" / name / "README.md").read_text().split("---\n", 2)
    return yaml.safe_load(front), text


def scripts(results):
    return re.findall(r"^```python\n(.*?)^```", card(results, "frozen-seed1")[1], re.MULTILINE | re.DOTALL)


def run(code, directory):
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1"}
    environment |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
    (directory.parent / "example.py").write_text(code)
    command = [sys.executable, str(directory.parent / "example.py")]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False, env=environment)


def test_there_is_a_directory_for_sft_and_for_each_arm_and_seed(released):
    results, config = released
    names = {f"{arm}-seed{seed}" for arm in config.arms for seed in config.seeds_of(arm)}
    assert {path.name for path in (results / "models").iterdir()} == names | {"sft"}


def test_the_weights_take_no_further_space(released):
    results, _ = released
    ours = results / "models/frozen-seed1/model.safetensors"
    assert ours.samefile(results / "rl/frozen/seed1/checkpoints/step40/model.safetensors")


def test_the_manifest_lists_every_file(released):
    results, _ = released
    files = {path.relative_to(results).as_posix() for path in (results / "models").rglob("*") if path.is_file()}
    assert set(read_manifest(results / "models.manifest.json").outputs) == files


def test_a_card_gives_pass_at_1_of_its_own_samples_with_its_interval(released):
    results, config = released
    bootstrap = TablesSettings.from_config(config).bootstrap
    evaluation = read_evaluation(results / "eval/frozen/seed1/step40.parquet", config.evaluation.samples)
    interval = measures([evaluation], [1])["pass@1"].interval(bootstrap)
    front, text = card(results, "frozen-seed1")
    shown = f"{number(interval.mean, 'fraction', suffix=False)} {bounds(interval, 'fraction')}"
    assert f"| pass@1, % | {shown} |" in text
    assert front["model-index"][0]["results"][0]["metrics"][0]["value"] == pytest.approx(interval.mean, abs=1e-4)


def test_a_card_says_what_its_training_recorded(released):
    results, _ = released
    text = card(results, "moving-seed2")[1]
    assert "| loss, learning rate, seed | `dppo_kl`, 0.00015, 2 |" in text
    assert "| scorer | moving (computed by `tree`) |" in text
    assert "| credit | `group_advantage` |" in card(results, "baseline-seed0")[1]
    assert "What does the guard prevent?" in card(results, "no_guard-seed0")[1]
    assert "minus the SFT checkpoint" not in card(results, "sft")[1]


def test_a_model_from_scratch_has_the_licence_of_the_code(released):
    front, text = card(released[0], "sft")
    assert front["license"] == "mit"
    assert "MIT" in text.rpartition("## Licence")[2]


@pytest.mark.parametrize("name", ["sft", "frozen-seed1"])
def test_a_table_has_cells_for_its_columns(released, name):
    tables = re.findall(r"(?:^\|.*\|\n)+", card(released[0], name)[1], re.MULTILINE)
    assert len(tables) == 2
    for table in tables:
        assert len({line.count("|") for line in table.splitlines()}) == 1, table


def test_the_code_for_transformers_runs_as_printed(released):
    done = run(scripts(released[0])[0], released[0] / "models/frozen-seed1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_the_code_for_vllm_runs_as_printed(released):
    done = run(scripts(released[0])[1], released[0] / "models/frozen-seed1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip()
