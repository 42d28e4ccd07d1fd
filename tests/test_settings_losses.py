"""The configuration of the losses says what the losses themselves say."""

import dataclasses
import typing
from pathlib import Path

import pytest
import yaml

from stepcredit.config_files import ConfigError, load_config
from stepcredit.losses import LOSSES, build_loss
from stepcredit.settings.losses import LossSettings
from stepcredit.settings.rl import RLSettings

DEFAULT = Path(__file__).parents[1] / "config" / "config.yaml"
SETTINGS = {kind.model_fields["name"].default: kind for kind in typing.get_args(typing.get_args(LossSettings)[0])}


def test_every_loss_can_be_configured_with_its_own_settings_and_defaults():
    assert SETTINGS.keys() == LOSSES.keys()
    for name, loss in LOSSES.items():
        ours = SETTINGS[name]().model_dump(exclude={"name"})
        theirs = {field.name: field.default for field in dataclasses.fields(loss)}
        assert ours == theirs, name


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_a_file_that_names_a_loss_gets_it(tmp_path, name):
    overlay = tmp_path / "mine.yaml"
    overlay.write_text(yaml.safe_dump({"rl": {"loss": {"name": name}}}))
    loss = load_config(DEFAULT, overlay).rl.loss
    assert build_loss(**loss.model_dump()) == LOSSES[name]()


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"rl": {"loss": {"name": "tiss"}}}, 'rl.loss.name is "tiss"; known values: reinforce, is, tis'),
        ({"rl": {"loss": {"name": "tiss"}}}, 'did you mean "tis"?'),
        ({"rl": {"loss": {"name": "tis", "capp": 3}}}, "rl.loss.capp is not a known key; rl.loss knows: name, cap"),
        ({"rl": {"loss": {"name": "tis", "cap": 0}}}, "rl.loss.cap is 0"),
        ({"rl": {"loss": {"name": "mis", "low": 9}}}, "rl.loss: low must not exceed high"),
        ({"stability": {"methods": [{"cap": 2}]}}, "stability.methods.0.name is missing"),
        ({"stability": {"methods": [{"name": "sc", "cap": 2}]}}, "stability.methods.0.cap is not a known key"),
        ({"stability": {"methods": [{"name": "sc"}, {"name": "sc"}]}}, "methods must differ from each other: sc, sc"),
        ({"stability": {"mismatches": [{"name": "exact", "label": "x"}]}}, "mismatches must differ"),
        (
            {"stability": {"mismatches": [{"name": "x", "label": "x", "weights": "int3"}]}},
            'stability.mismatches.0.weights is "int3"; known values: int8, int4',
        ),
        (
            {"stability": {"mismatches": [{"name": "x", "label": "x", "embedding": True}]}},
            "embedding: true rounds nothing",
        ),
        ({"sampler": {"kv_cache_dtype": "int8"}}, "known values: auto, fp8_e4m3, fp8_e5m2"),
    ],
)
def test_a_wrong_loss_or_mismatch_is_one_line_that_helps(overrides, said):
    with pytest.raises(ConfigError) as caught:
        load_config(DEFAULT, overrides=overrides)
    assert said in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_loss_survives_the_way_to_its_job():
    settings = RLSettings(loss={"name": "tis_sc", "cap": 3.0})
    assert RLSettings.model_validate_json(settings.canonical_json()) == settings
    assert build_loss(**settings.loss.model_dump()).cap == 3.0


def test_the_extended_grid_holds_the_whole_family_over_three_seeds():
    extended = load_config(DEFAULT, DEFAULT.with_name("extended.yaml")).stability
    assert {method.name for method in extended.methods} == LOSSES.keys()
    assert len(extended.seeds) >= 3
    assert set(extended.rewards) == {"raw", "group_centred"}
