import json
from pathlib import Path

import pytest
import yaml

from stepcredit.config import Config
from stepcredit.config_files import ConfigError, load_config, validate_config
from stepcredit.settings.rl import RLJob
from stepcredit.settings.section import Section

ROOT = Path(__file__).parents[1]
DEFAULT = ROOT / "config" / "config.yaml"


def changed(**overrides):
    return load_config(DEFAULT, overrides=overrides)


def error(**overrides) -> str:
    with pytest.raises(ConfigError) as caught:
        changed(**overrides)
    return str(caught.value)


def test_the_default_and_the_smoke_configuration_are_valid():
    assert load_config(DEFAULT).baseline == "baseline"
    assert load_config(DEFAULT, ROOT / "config" / "smoke.yaml").outdir == "results/smoke"


@pytest.mark.parametrize("name", ["extended", "steps", "hard", "smollm2"])
def test_the_other_configurations_are_valid_over_the_default(name):
    config = load_config(DEFAULT, ROOT / "config" / f"{name}.yaml")
    assert config.arms["frozen"] == load_config(DEFAULT).arms["frozen"]


def test_every_open_question_has_an_arm():
    arms = load_config(DEFAULT, ROOT / "config" / "extended.yaml").arms
    asked = [arm for arm in arms.values() if arm.question]
    assert len(asked) == len(arms) - 3
    plain = arms["frozen"].shaping
    changed = {
        name for arm in asked for name, value in arm.shaping.model_dump().items() if value != getattr(plain, name)
    }
    assert changed == type(plain).model_fields.keys() - {"temperature", "clip", "continuations"}
    assert {arm.credit for arm in asked} == {"contrastive_potential", "reference_likelihood", "prefix_value"}
    assert "average" in {arm.scorer.model for arm in asked if arm.scorer}


def test_an_arm_may_have_some_of_the_seeds_and_steps():
    config = changed(arms={"frozen": {"seeds": 2, "steps": [20, 40]}})
    assert config.seeds_of("frozen") == [0, 1]
    assert config.seeds_of("moving") == [0, 1, 2]
    assert config.steps_of("frozen") == [20, 40]
    assert config.steps_of("moving") == [20, 30, 40]


def test_the_default_file_spells_out_every_default():
    assert load_config(DEFAULT) == Config(arms=load_config(DEFAULT).arms)


def test_a_misspelt_key_names_the_file_the_key_and_the_nearest():
    message = error(rl={"temprature": 1.0})
    assert "rl.temprature is not a known key" in message
    assert 'did you mean "temperature"?' in message


def test_the_culprit_is_the_file_that_sets_the_key(tmp_path):
    overlay = tmp_path / "mine.yaml"
    overlay.write_text("sft: {stepz: 3}")
    with pytest.raises(ConfigError) as caught:
        load_config(DEFAULT, overlay)
    assert str(caught.value).startswith(f"{overlay}: sft.stepz is not a known key")
    assert 'did you mean "steps"?' in str(caught.value)


def test_a_misspelt_value_names_the_known_ones():
    arms = {"frozen": {"scorer": {"kind": "tre"}}}
    known = "tree, engine, cached, batched, naive"
    assert error(arms=arms).endswith(f'arms.frozen.scorer.kind is "tre"; known values: {known} (did you mean "tree"?)')


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"seeds": [1, 1]}, "seeds must differ"),
        ({"seeds": []}, "seeds"),
        ({"baseline": "basline"}, 'baseline is "basline"'),
        ({"rl": {"prompts_per_step": 0}}, "rl.prompts_per_step is 0"),
        ({"rl": {"prompts_per_step": "many"}}, "rl.prompts_per_step is 'many'"),
        ({"rl": {"rollouts_per_prompt": 1}}, "rl.rollouts_per_prompt is 1"),
        ({"rl": {"max_new_tokens": 600}}, "leaves no room for a prompt"),
        ({"evaluation": {"pass_k": [1, 8]}}, "pass@8 of 4 samples"),
        ({"evaluation": {"steps": [0, 40, 20]}}, "evaluation: steps must be in increasing order"),
        ({"sft": {"warmup_steps": 1200}}, "warmup_steps + decay_steps"),
        ({"model": {"attention_heads": 3, "key_value_heads": 2}}, "multiple of key_value_heads"),
        ({"data": {"source": "file"}}, "file.path is not set"),
        ({"data": {"synthetic": {"largest_number": 99, "largest_intermediate": 98}}}, "largest_intermediate must hold"),
        (
            {"data": {"synthetic": {"largest_number": 60, "largest_target": 50, "largest_intermediate": 50}}},
            "tokenizer",
        ),
        ({"data": {"source": "hubb"}}, 'did you mean "hub"?'),
        ({"arms": {"baseline": {"scorer": {"model": "frozen"}}}}, "takes no scorer"),
        ({"arms": {"lonely": {"label": "x", "credit": "contrastive_potential"}}}, "needs a scorer"),
        ({"arms": {"Bad name": {"label": "x", "credit": "group_advantage"}}}, "a name is lower-case"),
        ({"arms": {"baseline": {"seeds": 1}}}, "the baseline has all seeds and steps"),
        ({"arms": {"frozen": {"steps": [20, 30]}}}, "arms.frozen.steps must be some of [20, 30, 40]"),
        ({"arms": {"frozen": {"steps": [40, 20]}}}, "arms.frozen.steps must be some of"),
        ({"arms": {"frozen": {"shaping": {"reference_answer": "allways"}}}}, 'did you mean "always"?'),
        ({"signal": {"arms": ["absent"]}}, 'signal.arms names "absent"'),
        ({"arms": {"nolabel": {"credit": "group_advantage"}}}, "arms.nolabel.label is missing"),
    ],
)
def test_impossible_values_are_refused_in_one_line(overrides, said):
    message = error(**overrides)
    assert said in message
    assert len(message.splitlines()) == 1


@pytest.mark.parametrize("content", ["[1, 2]", "just words", "a: [unclosed", "\x00"])
def test_a_file_that_is_no_mapping_is_refused_by_name(tmp_path, content):
    file = tmp_path / "broken.yaml"
    file.write_text(content)
    with pytest.raises(ConfigError, match=r"broken\.yaml"):
        load_config(file)


def test_a_missing_file_is_refused_by_name(tmp_path):
    with pytest.raises(ConfigError, match=r"absent\.yaml: cannot be read"):
        load_config(tmp_path / "absent.yaml")


def test_a_job_reads_back_what_a_rule_passed():
    config = load_config(DEFAULT)
    job = RLJob(arm=config.arms["frozen"], rl=config.rl, sampler=config.sampler, steps=[10, 20])
    assert RLJob.model_validate_json(job.canonical_json()) == job
    assert json.loads(job.canonical_json())["arm"]["shaping"]["beta"] == 0.1


def test_values_never_change_after_validation():
    config = load_config(DEFAULT)
    with pytest.raises(ValueError, match="frozen"):
        config.rl.temperature = 2.0


def keys(section: type[Section]):
    for name, field in section.model_fields.items():
        yield name
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            yield from keys(field.annotation)


def test_the_readme_explains_every_key():
    text = (ROOT / "config" / "README.md").read_text()
    missing = [key for key in keys(Config) if f"`{key}`" not in text and f".{key}`" not in text]
    assert missing == []


def test_the_schema_on_file_is_that_of_the_code():
    assert json.loads((ROOT / "config" / "schema.json").read_text()) == Config.model_json_schema()


def test_validation_accepts_what_snakemake_merged():
    raw = yaml.safe_load(DEFAULT.read_text())
    assert validate_config(raw, sources=[DEFAULT]).rl.prompts_per_step == 16
