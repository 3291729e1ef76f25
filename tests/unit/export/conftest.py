"""Small exported functions that the tests of this folder edit."""

import numpy as np
import pytest

from tests.unit.export.files import File, four
from weft import Tensor, Variable


@pytest.fixture
def double(tmp_path):
    return File(tmp_path / "f.weft", lambda x: x * 2, four())


@pytest.fixture
def captured(tmp_path):
    weight = Tensor([[1.0, 2.0], [3.0, 4.0]]).realize()
    return File(tmp_path / "f.weft", lambda x: x @ weight, Tensor([[1.0, 2.0]]).realize())


@pytest.fixture
def counter(tmp_path):
    """A function that writes what it captured, and takes rows of a constant."""
    total = Tensor([0.0, 0.0, 0.0, 0.0]).realize()

    def step(x):
        total.assign(total + x)
        return total[np.array([0, 3])] * 2

    return File(tmp_path / "f.weft", step, four())


@pytest.fixture
def donated(tmp_path):
    def both(x, y):
        return x + y, x * y

    return File(tmp_path / "f.weft", both, four(), four(), donate=(0, 1))


@pytest.fixture
def symbolic(tmp_path):
    n = Variable("n", 1, 4)
    return File(tmp_path / "f.weft", lambda x, n: x[:n] * 2, four(), n.bind(2))
