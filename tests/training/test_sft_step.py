"""One step of supervised fine-tuning: the same update however its batch is cut and its activations are kept."""

import pytest
import torch

from stepcredit.modeling.model import build_model
from stepcredit.modeling.tokenizer import TextCodec, build_tokenizer
from stepcredit.settings.model import ModelSettings
from stepcredit.settings.sft import SFTSettings
from stepcredit.training.optimizer import build_optimizer
from stepcredit.training.sft import sft_step

CODEC = TextCodec(build_tokenizer(20))
SHAPE = ModelSettings(
    hidden_size=32, layers=2, intermediate_size=64, attention_heads=2, key_value_heads=1, head_dim=32, max_positions=64
)
BATCH = [([5, 6], [7, 8, 9]), ([5] * 4, [10] * 12), ([11], [12, 13])]


def stepped(**changes):
    settings = SFTSettings(**changes)
    model = build_model(SHAPE, CODEC, seed=0)
    row = sft_step(model, build_optimizer(model, settings.optimizer, 1e-3), BATCH, settings)
    return row, torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


@pytest.mark.parametrize(
    "changes", [{"tokens_per_microbatch": 8}, {"gradient_checkpointing": True, "tokens_per_microbatch": 16}]
)
def test_the_update_does_not_depend_on_what_bounds_its_memory(changes):
    plain, expected = stepped()
    row, weights = stepped(**changes)
    assert row["tokens"] == plain["tokens"] == 24
    assert row["loss"] == pytest.approx(plain["loss"], abs=1e-5)
    assert row["grad_norm"] == pytest.approx(plain["grad_norm"], rel=1e-4)
    torch.testing.assert_close(weights, expected, atol=2e-5, rtol=0)
