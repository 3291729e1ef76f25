"""Weights that are computed from other parameters: trained, saved, copied and taken back."""

import copy

import numpy as np
import pytest

from weft import ArgumentError, Tensor, nn
from weft.nn.utils import parametrizations, parametrize


def test_a_parametrized_weight_is_trained_and_taken_back():
    layer = nn.Linear(3, 2)
    before = layer.weight.numpy()
    parametrizations.weight_norm(layer)
    assert parametrize.is_parametrized(layer, "weight")
    np.testing.assert_allclose(layer.weight.numpy(), before, 1e-5, 1e-6)
    names = [name for name, _ in layer.named_parameters()]
    assert "parametrizations.weight.original0" in names and "weight" not in names
    layer(Tensor.ones(4, 3)).sum().backward()
    assert layer.parametrizations.weight.original1.grad is not None
    other = copy.deepcopy(layer)
    other.parametrizations.weight.original0.data.mul_(2)
    np.testing.assert_allclose(other.weight.numpy(), 2 * before, 1e-5, 1e-6)
    np.testing.assert_allclose(layer.weight.numpy(), before, 1e-5, 1e-6)
    with pytest.raises(ArgumentError, match="computed by a parametrization"):
        layer.weight = Tensor.ones(2, 3)
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear
    assert [name for name, _ in layer.named_parameters()] == ["bias", "weight"]


def test_the_spectral_norm_is_one():
    Tensor.manual_seed(0)
    layer = nn.utils.spectral_norm(nn.Linear(4, 3))
    assert abs(np.linalg.norm(layer.weight.numpy(), 2) - 1) < 0.05
    assert sorted(layer.state_dict()) == [
        "bias",
        "parametrizations.weight.0._u",
        "parametrizations.weight.0._v",
        "parametrizations.weight.original",
    ]
