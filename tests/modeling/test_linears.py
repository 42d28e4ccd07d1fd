"""Linear layers by oneDNN: the same numbers up to rounding, and the model as it was afterwards."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from stepcredit.modeling.linears import linears_by_onednn


class Doubled(nn.Linear):
    """A linear layer that is more than a product."""

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(hidden)


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(33, 70), nn.SiLU(), nn.Linear(70, 96, bias=False), Doubled(96, 5))


@torch.inference_mode()
@pytest.mark.parametrize("shape", [(1, 129, 33), (7, 33), (1, 1, 33), (1, 0, 33)])
def test_outputs_are_those_of_torch(shape: tuple[int, ...]) -> None:
    layers, hidden = model(), torch.randn(shape)
    plain = layers(hidden)
    with linears_by_onednn(layers):
        found = layers(hidden)
    torch.testing.assert_close(found, plain, rtol=0, atol=1e-5)


@torch.inference_mode()
def test_weights_are_read_at_each_call() -> None:
    layers, hidden = model(), torch.randn(4, 33)
    with linears_by_onednn(layers):
        before = layers(hidden)
        layers[0].weight.mul_(2)
        after = layers(hidden)
    torch.testing.assert_close(after, layers(hidden), rtol=0, atol=1e-5)
    assert (after - before).abs().max() > 1e-2


def test_layers_are_given_back_also_after_an_error() -> None:
    layers = model()
    with pytest.raises(KeyError), linears_by_onednn(layers):
        raise KeyError
    assert not any("forward" in vars(layer) for layer in layers)
    layers(torch.randn(4, 33)).sum().backward()
    assert layers[0].weight.grad is not None


def test_other_layers_and_other_precisions_stay_as_they_are() -> None:
    with linears_by_onednn(layers := model()):
        assert ["forward" in vars(layer) for layer in layers] == [True, False, True, False]
    with linears_by_onednn(layers := model().to(torch.bfloat16)):
        assert not any("forward" in vars(layer) for layer in layers)
