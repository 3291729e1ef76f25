"""Random numbers: the published test vectors, the order of draws, distributions."""

import numpy as np
import pytest

from weft.ir.dtypes import dtypes
from weft.ir.uop import const
from weft.reference.tensor import evaluate
from weft.tensor import Tensor
from weft.tensor.random import threefry

# Key, counter and result for 20 rounds, from the known answers of the Random123 library.
KNOWN = (
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
)


@pytest.mark.parametrize("key,counter,expected", KNOWN)
def test_known_answers(key: tuple[int, ...], counter: tuple[int, ...], expected: tuple[int, ...]):
    def words(values: tuple[int, ...]) -> tuple:
        return tuple(const(dtypes.uint32, value) for value in values)

    assert tuple(int(x) for x in evaluate(threefry(words(key), words(counter)))) == expected


def test_draws_depend_on_the_seed_and_the_order():
    Tensor.manual_seed(3)
    first, second = Tensor.rand(4), Tensor.rand(4)
    Tensor.manual_seed(3)
    again = Tensor.rand(4).realize(), Tensor.rand(4).realize()
    assert first.tolist() == again[0].tolist()
    assert second.tolist() == again[1].tolist()
    assert first.tolist() != second.tolist()
    Tensor.manual_seed(4)
    assert Tensor.rand(4).tolist() != first.tolist()


def test_a_draw_goes_on_where_the_last_one_ended():
    Tensor.manual_seed(5)
    whole = Tensor.rand(6).tolist()
    Tensor.manual_seed(5)
    assert Tensor.rand(2).tolist() + Tensor.rand(4).tolist() == whole


@pytest.mark.parametrize("dtype", ("float16", "bfloat16", "float32", "float64"))
def test_uniform(dtype: str):
    Tensor.manual_seed(1)
    x = Tensor.rand(2000, dtype=dtype).numpy().astype(np.float64)
    assert x.min() >= 0 and x.max() < 1
    assert abs(x.mean() - 0.5) < 0.03
    y = Tensor.uniform(1000, low=-3, high=5).numpy()
    assert y.min() >= -3 and y.max() < 5


def test_normal():
    Tensor.manual_seed(2)
    x = Tensor.randn(1500).numpy()
    assert abs(x.mean()) < 0.1
    assert abs(x.std() - 1) < 0.1
    y = Tensor.normal(500, mean=10.0, std=2.0).numpy()
    assert abs(y.mean() - 10) < 0.5
    assert Tensor.randn(3, dtype="float64").dtype is dtypes.float64


def test_integers():
    Tensor.manual_seed(3)
    x = Tensor.randint(500, low=-2, high=3)
    assert x.dtype is dtypes.int32
    assert sorted(set(x.tolist())) == [-2, -1, 0, 1, 2]


def test_weights():
    Tensor.manual_seed(4)
    for name in ("scaled_uniform", "glorot_uniform", "kaiming_uniform", "kaiming_normal"):
        assert getattr(Tensor, name)(4, 5).numpy().shape == (4, 5)
    assert np.abs(Tensor.scaled_uniform(4, 25).numpy()).max() <= 0.1
    assert Tensor.ones(2, 3).rand_like().shape == (2, 3)
    assert Tensor.ones(2, 3).half().randn_like().dtype is dtypes.float16


def test_dropout(monkeypatch: pytest.MonkeyPatch):
    x = Tensor.ones(1000)
    assert x.dropout(0.5) is x
    monkeypatch.setattr(Tensor, "training", True)
    Tensor.manual_seed(6)
    y = x.dropout(0.25).numpy()
    assert set(np.unique(y).tolist()) == {0.0, float(np.float32(1 / 0.75))}
    assert abs((y == 0).mean() - 0.25) < 0.05
    assert x.dropout(1.0).sum().item() == 0.0


def test_zero_elements():
    assert Tensor.rand(0, 3).tolist() == []
    assert isinstance(Tensor.rand().item(), float)
