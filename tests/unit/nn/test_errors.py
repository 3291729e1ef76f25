"""Layers, functions and optimizers answer what does not fit with names and what to write."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft import nn
from weft.nn import functional
from weft.support.errors import ArgumentTypeError, UnknownAttribute, UsageError
from weft.tensor import Tensor

LAYERS: dict[str, Callable[[], Any]] = {
    "Linear": lambda: nn.Linear(2, 2),
    "Conv2d": lambda: nn.Conv2d(1, 1, 1),
    "Embedding": lambda: nn.Embedding(3, 2),
    "LayerNorm": lambda: nn.LayerNorm(2),
    "BatchNorm1d": lambda: nn.BatchNorm1d(2),
    "InstanceNorm2d": lambda: nn.InstanceNorm2d(2),
    "LSTM": lambda: nn.LSTM(2, 2),
    "MultiheadAttention": lambda: nn.MultiheadAttention(2, 1),
    "ReLU": lambda: nn.ReLU(),
    "MSELoss": lambda: nn.MSELoss(),
    "Sequential": lambda: nn.Sequential(nn.Linear(2, 2)),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("value", [np.ones((1, 2), np.float32), [[1.0, 2.0]], None, "x", 3.0])
def test_what_is_no_tensor(name: str, value: Any):
    layer = LAYERS[name]()
    with pytest.raises(ArgumentTypeError, match="expected a Tensor, got"):
        layer(value, value) if name == "MSELoss" else layer(value)


@pytest.mark.parametrize("name", ["relu", "cross_entropy", "linear", "softmax", "mse_loss"])
def test_functions_of_what_is_no_tensor(name: str):
    with pytest.raises(ArgumentTypeError, match=f"{name}: expected a Tensor, got a numpy.ndarray"):
        getattr(functional, name)(np.ones((2, 2)), np.ones((2, 2)))


@pytest.mark.parametrize("make", [nn.Linear, nn.Conv2d, nn.Embedding, nn.GroupNorm, nn.LSTM])
def test_missing_and_unknown_arguments(make: Any):
    with pytest.raises(ArgumentTypeError, match=f"{make.__name__}: missing"):
        make()
    with pytest.raises(ArgumentTypeError, match=f"{make.__name__}: unknown argument 'colour'"):
        make(2, 2, colour=3)


@pytest.mark.parametrize("package", [nn.optim, weft.optim])
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_optimizers(package: Any, name: str):
    make = getattr(package, name)
    with pytest.raises(UsageError, match=f"{name}: unknown (argument|option) 'learning'"):
        make([Tensor([1.0])], learning=3)
    for wrong in (Tensor([1.0]), [np.ones(2)]):
        with pytest.raises(ArgumentTypeError):
            make(wrong)
    assert name in repr(make([Tensor([1.0])], lr=0.1))


@pytest.mark.parametrize(
    ("ask", "fix"),
    [
        (lambda: functional.rellu, "write weft.nn.functional.relu"),
        (lambda: weft.optim.Adm, "write weft.optim.Adam"),
        (lambda: weft.linalg.invv, "write weft.linalg.inv"),
        (lambda: nn.Liner, "write weft.nn.Linear"),
        (lambda: nn.optim.SGD([Tensor([1.0])]).setp, "write step"),
        (lambda: nn.Linear(2, 2).wieght, "write weight"),
        (lambda: nn.state.safe_laod, "write weft.nn.state.safe_load"),
        (lambda: functional.zzzzqqq, ""),
    ],
)
def test_names(ask: Callable[[], Any], fix: str):
    with pytest.raises(UnknownAttribute) as caught:
        ask()
    assert caught.value.fix == fix


def test_functions_of_the_package_are_those_of_tensors():
    x = Tensor([[1.0, 3.0], [4.0, 2.0]])
    values, indices = weft.max(x, 1)
    assert (values.tolist(), indices.tolist()) == ([3.0, 4.0], [1, 0])
    assert weft.min(x).item() == 1.0
    assert weft.float32 is weft.dtypes.float32
    assert weft.compile(lambda x: x + 1)(x).tolist() == [[2.0, 4.0], [5.0, 3.0]]


def test_a_report_of_versions(capsys: pytest.CaptureFixture[str]):
    weft.show_versions()
    assert capsys.readouterr().out.startswith(f"weft      {weft.__version__}\n")


def test_a_missing_file():
    with pytest.raises(FileNotFoundError, match="cannot be read") as caught:
        weft.load("/nowhere/at/all.pt")
    assert isinstance(caught.value, weft.MissingFile)
