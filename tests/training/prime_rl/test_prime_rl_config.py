import socket
import tomllib
from pathlib import Path

import pytest

from stepcredit import jobs
from stepcredit.config_files import ConfigError, load_config
from stepcredit.training.prime_rl.config import RunPlace, rl_configuration, sft_configuration, write_toml
from stepcredit.training.prime_rl.keys import UnknownKeyError, check_keys, flatten
from stepcredit.training.prime_rl.launcher import our_command
from stepcredit.training.prime_rl.run import _is_free, free_ports

ROOT = Path(__file__).parents[3]
PLACE = RunPlace(Path("runs"), "run", Path("model"), Path("data"), port=9000)


def paper(**overrides):
    return load_config(ROOT / "config" / "config.yaml", ROOT / "config" / "paper.yaml", overrides=overrides)


def rl(arm: str, seed: int = 1, rate: float = 2e-6):
    config = paper()
    return rl_configuration(jobs.prime_rl_job(config, jobs.rl_job(config, arm)), seed, rate, PLACE)


def test_the_published_settings_are_written():
    sft = sft_configuration(paper().sft, PLACE)
    assert (sft["max_steps"], sft["data"]["batch_size"], sft["data"]["seq_len"]) == (200, 8, 1024)
    assert sft["scheduler"] == {"type": "linear", "warmup_steps": 10, "decay_steps": 90, "min_lr": 1.5e-6}
    found = rl("frozen")
    assert (found["orchestrator"]["batch_size"], found["orchestrator"]["group_size"]) == (128, 8)
    assert found["orchestrator"]["train"]["sampling"]["max_completion_tokens"] == 768
    assert found["ckpt"]["interval"] == 5
    assert found["trainer"]["optim"]["lr"] == 2e-6


def test_a_frozen_scorer_has_its_own_server_and_a_moving_one_is_the_policys():
    frozen, moving = (rl(arm)["orchestrator"]["algo"]["scorer"] for arm in ("frozen", "moving"))
    assert frozen == {"kind": "cached", "url": "http://127.0.0.1:9002"}
    assert moving == {"kind": "cached", "url": "http://127.0.0.1:9000"}
    assert rl("baseline")["orchestrator"]["algo"] == {"type": "grpo"}


def test_only_a_policy_that_scores_has_our_endpoint_and_it_keeps_prime_rls_own_plugin():
    baseline, frozen, moving = (rl(arm)["inference"] for arm in ("baseline", "frozen", "moving"))
    assert moving["env_vars"] == {"VLLM_PLUGINS": "prime_rl,stepcredit"}
    assert baseline["env_vars"] == frozen["env_vars"] == {}
    assert moving["server"] == {"host": "127.0.0.1", "port": 9000}


def test_what_is_written_reads_back(tmp_path):
    write_toml(rl("frozen"), tmp_path / "rl.toml")
    assert tomllib.loads((tmp_path / "rl.toml").read_text()) == rl("frozen")


def test_an_unknown_key_names_the_nearest():
    with pytest.raises(
        UnknownKeyError, match=r'no key orchestrator\.group_sizes \(did you mean "orchestrator.group_size"'
    ):
        check_keys("rl", {"orchestrator": {"group_sizes": 8}})
    with pytest.raises(UnknownKeyError, match="max_steps is 'many', not"):
        check_keys("sft", {"max_steps": "many"})
    with pytest.raises(UnknownKeyError, match="no key max_async_level"):
        check_keys("rl", {"max_async_level": 2})


def test_a_schema_is_flattened_through_references_unions_and_lists():
    schema = {
        "$defs": {"A": {"type": "object", "additionalProperties": False, "properties": {"n": {"type": "integer"}}}},
        "properties": {
            "one": {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]},
            "many": {"type": "array", "items": {"$ref": "#/$defs/A"}},
        },
    }
    assert flatten(schema) == {
        "many": "array",
        "many[]": "table",
        "many[].n": "integer",
        "one": "null|table",
        "one.n": "integer",
    }


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"model": {"pretrained": None, "max_positions": 2048}}, "set model.pretrained"),
        ({"rl": {"loss": {"name": "dppo_kl"}}, "arms": {"frozen": {"scorer": {"model": "average"}}}}, "moving-average"),
        ({"arms": {"raw": {"label": "raw", "credit": "raw_reward"}}}, "no credit raw_reward"),
    ],
)
def test_what_prime_rl_could_not_honour_is_refused(overrides, said):
    with pytest.raises(ConfigError, match=said):
        paper(**overrides)
    paper(**overrides, backend="native")


def test_only_the_orchestrators_command_is_ours():
    assert our_command(["inference", "@", "x"]) == ["inference", "@", "x"]
    assert our_command(["orchestrator", "@", "x"])[1:] == [
        "-m",
        "stepcredit.training.prime_rl.orchestrator",
        "@",
        "x",
    ]


def test_ports_are_none_that_an_outgoing_connection_is_given():
    first = free_ports()
    assert first + 2 < 32_768
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", first + 1))
        assert not _is_free(first + 1)
