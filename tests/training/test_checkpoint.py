import pytest
import torch

from stepcredit.modeling.model import build_model
from stepcredit.modeling.tokenizer import TextCodec, build_tokenizer
from stepcredit.settings.model import ModelSettings, OptimizerSettings
from stepcredit.training.checkpoint import Progress, StateDirectory, link_tree
from stepcredit.training.optimizer import build_optimizer, linear_schedule, warmup_schedule

CODEC = TextCodec(build_tokenizer(20))
SMALL = ModelSettings(
    hidden_size=32,
    layers=1,
    intermediate_size=64,
    attention_heads=2,
    key_value_heads=1,
    head_dim=32,
    max_positions=64,
)
IDENTITY = {"settings": {"lr": 1.0}, "inputs": ["abc"]}


def trainable(seed=0):
    model = build_model(SMALL, CODEC, seed)
    return model, build_optimizer(model, OptimizerSettings(), 1e-2)


def take_step(model, optimizer, seed):
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)
    optimizer.step()


def test_a_resumed_optimiser_continues_bit_for_bit(tmp_path):
    model, optimizer = trainable()
    take_step(model, optimizer, 1)
    StateDirectory(tmp_path, IDENTITY, [2]).save(model, optimizer, Progress(1, {"metrics": [{"step": 1}]}))
    take_step(model, optimizer, 2)

    resumed, resumed_optimizer = trainable(seed=9)
    progress = StateDirectory(tmp_path, IDENTITY, [2]).resume(resumed, resumed_optimizer)
    assert progress == Progress(1, {"metrics": [{"step": 1}]})
    take_step(resumed, resumed_optimizer, 2)
    for ours, theirs in zip(model.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_a_state_of_another_identity_is_not_resumed(tmp_path):
    model, optimizer = trainable()
    StateDirectory(tmp_path, IDENTITY, [2]).save(model, optimizer, Progress(1, {}))
    changed = {"settings": {"lr": 2.0}, "inputs": ["abc"]}
    assert StateDirectory(tmp_path, changed, [2]).resume(model, optimizer) is None


def test_a_finished_run_starts_anew_but_a_longer_goal_continues_it(tmp_path):
    model, optimizer = trainable()
    states = StateDirectory(tmp_path, IDENTITY, [2])
    states.save(model, optimizer, Progress(2, {}))
    states.finish()
    longer = StateDirectory(tmp_path, IDENTITY, [2, 4]).resume(model, optimizer)
    assert longer is not None
    assert longer.step == 2
    assert StateDirectory(tmp_path, IDENTITY, [2]).resume(model, optimizer) is None


def test_an_interrupted_save_leaves_the_previous_state(tmp_path, monkeypatch):
    model, optimizer = trainable()
    states = StateDirectory(tmp_path, IDENTITY, [2])
    states.save(model, optimizer, Progress(1, {}))

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("stepcredit.training.checkpoint.save_file", full_disk)
    with pytest.raises(OSError, match="No space left"):
        states.save(model, optimizer, Progress(2, {}))
    assert StateDirectory(tmp_path, IDENTITY, [2]).resume(model, optimizer) == Progress(1, {})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["identity.json", "latest"]


def test_linked_checkpoints_survive_the_removal_of_the_state(tmp_path):
    source = tmp_path / "state" / "step1"
    source.mkdir(parents=True)
    (source / "config.json").write_text("{}")
    link_tree(source, tmp_path / "out" / "step1")
    (source / "config.json").unlink()
    assert (tmp_path / "out" / "step1" / "config.json").read_text() == "{}"


def test_the_linear_schedule_warms_up_stays_and_decays_over_the_last_steps():
    rates = [linear_schedule(step, peak=1.0, floor=0.1, warmup=2, decay=3, total=8) for step in range(1, 9)]
    assert rates == [0.5, 1.0, 1.0, 1.0, 1.0, 0.7, 0.4, 0.09999999999999998]


def test_the_rl_schedule_warms_up_and_stays():
    assert [warmup_schedule(step, peak=1.0, warmup=4) for step in (1, 2, 4, 9)] == [0.25, 0.5, 1.0, 1.0]
    assert warmup_schedule(1, peak=1.0, warmup=0) == 1.0
