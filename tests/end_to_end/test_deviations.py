"""Every deviation from PyTorch that the docs list is there, and is as they say."""

import math
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import weft
from tests.end_to_end.deviations import DEVIATIONS, Deviation, answer
from weft import Context, Tensor
from weft.utils.data import default_collate


def copies(make: Any) -> Any:
    """What a tensor holds after the array it was made of has changed."""
    array = np.array([1.0, 2.0], np.float32)
    made = make(array)
    array[0] = 9
    return made


def reshaped(x: Any) -> Any:
    """What a tensor holds after a write to the reshape of its transpose."""
    x.T.reshape(4)[2] = 9
    return x


def slope(f: Any, x: Any) -> Any:
    """The gradient of the sum of a function."""
    x.requires_grad_(True)
    f(x).sum().backward()
    return x.grad


def normalized(x: Any) -> Any:
    """What a batch norm that stands alone makes of a batch, to three digits."""
    package = import_module(type(x).__module__.partition(".")[0])
    return (package.nn.BatchNorm1d(1)(x).detach() * 1000).round() / 1000


def unrecorded(x: Any) -> Any:
    """The gradient through a computed value that was written where nothing is recorded."""
    package = import_module(type(x).__module__.partition(".")[0])
    x.requires_grad_(True)
    y = x * 2
    with package.no_grad():
        y.mul_(3)
    (x + y).sum().backward()
    return x.grad


def result(source: str, **names: Any) -> str:
    try:
        known = {"math": math, "copies": copies, "reshaped": reshaped, "slope": slope}
        known |= {"normalized": normalized, "default_collate": default_collate}
        known["unrecorded"] = unrecorded
        value = eval(source, known | names)
    except Exception as error:
        return answer(error)
    return answer(value)


@pytest.mark.parametrize("row", DEVIATIONS, ids=lambda row: row.subject)
@pytest.mark.parametrize("device", ["CPU", "PYTHON"])
def test_weft_answers_as_the_page_says(row: Deviation, device: str):
    with Context(DEVICE=device), np.errstate(all="ignore"):
        assert result(row.ours, Tensor=Tensor, weft=weft) == row.our_answer


@pytest.mark.peers("torch")
@pytest.mark.parametrize("row", DEVIATIONS, ids=lambda row: row.subject)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_torch_answers_as_the_page_says(row: Deviation):
    assert result(row.theirs, torch=import_module("torch")) == row.their_answer


def test_a_deviation_deviates():
    assert all(row.our_answer != row.their_answer for row in DEVIATIONS)
