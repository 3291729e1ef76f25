"""Numbers of the host: no dtype in between, and none that wraps in silence."""

import math

import pytest

from weft import Tensor, nn
from weft.support.errors import ArgumentError, ArgumentTypeError, DTypeError


@pytest.mark.parametrize(
    ("value", "dtype"), [(0.1, "float64"), (1e300, "float64"), (16777217.0, "int64")]
)
def test_a_list_goes_to_its_dtype_at_once(value: float, dtype: str):
    assert Tensor([value], dtype=dtype).item() == value


@pytest.mark.parametrize(
    "make",
    [
        lambda: Tensor(2**35),
        lambda: Tensor([2**35]),
        lambda: Tensor.full((2,), 2**35),
        lambda: Tensor.arange(2**31, 2**31 + 3),
        lambda: Tensor([1]) + 2**35,
        lambda: 2**40 - Tensor([1]),
    ],
)
def test_integers_do_not_wrap(make):
    with pytest.raises(ArgumentError, match="does not fit"):
        make()


def test_wide_integers_by_dtype():
    assert Tensor.full((1,), 2**35, dtype="int64").item() == 2**35
    assert Tensor.arange(2**31, 2**31 + 2, dtype="int64").tolist() == [2**31, 2**31 + 1]
    assert (Tensor([1], dtype="int64") + 2**35).item() == 2**35 + 1


def test_a_node_takes_a_dtype():
    assert Tensor(Tensor([1.5]).uop, dtype="int32").tolist() == [1]


def test_bytes_in_a_list():
    assert Tensor([b"ab", b"cd"]).tolist() == [[97, 98], [99, 100]]


@pytest.mark.parametrize("make", [Tensor.glorot_uniform, Tensor.kaiming_uniform,
                                  Tensor.kaiming_normal, Tensor.scaled_uniform])  # fmt: skip
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_empty_weights(make, shape: tuple[int, int]):
    assert make(*shape).shape == shape


def test_raw_errors_are_answered():
    with pytest.raises(DTypeError, match="-inf in a tensor of int32"):
        Tensor([1]).pad((1, 1), value=-math.inf)
    with pytest.raises(ArgumentTypeError, match="a list of several keys"):
        Tensor([[1, 2]])[[slice(None), [0, 1]]]
    assert nn.optim.Adam([Tensor([1.0])], 1e-3, (0.9, 0.99)).lr.item() == pytest.approx(1e-3)


@pytest.mark.peers("torch")
def test_tensors_of_another_library():
    import torch

    with pytest.raises(ArgumentTypeError, match=r"got a torch\.Tensor"):
        Tensor([1.0]) + torch.ones(1)


@pytest.mark.parametrize(
    ("function", "at", "slopes"),
    [
        (lambda x: x.leaky_relu(0.25), [0.0], [0.25]),
        (lambda x: x.relu6(), [0.0, 6.0, 3.0], [0.0, 0.0, 1.0]),
        (lambda x: x.hardtanh(), [-1.0, 1.0, 0.5], [0.0, 0.0, 1.0]),
        (lambda x: x.std(), [2.0, 2.0], [0.0, 0.0]),
        (lambda x: x.sigmoid().binary_cross_entropy(Tensor([1.0])), [200.0], [0.0]),
    ],
)
def test_slopes_at_kinks_are_those_of_pytorch(function, at: list[float], slopes: list[float]):
    x = Tensor(at, requires_grad=True)
    assert function(x).sum().gradient(x)[0].tolist() == slopes
