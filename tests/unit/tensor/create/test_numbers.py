"""Numbers of the host on their way into tensors: none is rounded twice, wrapped or cut."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from weft.ir.build import variable
from weft.support.errors import ArgumentError, DTypeError, UsageError
from weft.tensor import Tensor
from weft.tensor.jit.jit import jit

LARGE = 2**35

# Every operation where a Python int meets an integer dtype.
ENTRIES: dict[str, Callable[[Any], Any]] = {
    "number": lambda n: Tensor(n, dtype="int32"),
    "list": lambda n: Tensor([n], dtype="int32"),
    "list without a dtype": lambda n: Tensor([n]),
    "nested list": lambda n: Tensor([[0], [n]], dtype="int32"),
    "list of NumPy ints": lambda n: Tensor([np.int64(n)], dtype="int32"),
    "full": lambda n: Tensor.full((2,), n),
    "full with a dtype": lambda n: Tensor.full((2,), n, dtype="int32"),
    "full_like": lambda n: Tensor([1]).full_like(n),
    "new_full": lambda n: Tensor([1]).new_full((2,), n),
    "fill_": lambda n: Tensor([1]).fill_(n),
    "arange": lambda n: Tensor.arange(n, n + 3),
    "linspace": lambda n: Tensor.linspace(0, n, 3, dtype="int32"),
    "randint": lambda n: Tensor.randint(2, low=0, high=n),
    "add": lambda n: Tensor([1]) + n,
    "subtract from": lambda n: n - Tensor([1]),
    "multiply": lambda n: Tensor([1]) * n,
    "compare": lambda n: Tensor([1]) < n,
    "maximum": lambda n: Tensor([1]).maximum(n),
    "clip": lambda n: Tensor([1]).clip(0, n),
    "where": lambda n: Tensor([True]).where(Tensor([1]), n),
    "masked_fill": lambda n: Tensor([1]).masked_fill(Tensor([True]), n),
    "pad": lambda n: Tensor([1]).pad(((1, 1),), value=n),
    "item": lambda n: Tensor([1, 2]).__setitem__(0, n),
    "scatter": lambda n: Tensor([1, 2]).scatter(0, Tensor([0]), n),
    "index_fill": lambda n: Tensor([1, 2]).index_fill(0, Tensor([0]), n),
}


@pytest.mark.parametrize("name", ENTRIES)
def test_an_int_that_does_not_fit_is_refused(name: str):
    with pytest.raises(ArgumentError, match="does not fit int32"):
        ENTRIES[name](LARGE)


@pytest.mark.parametrize("name", ENTRIES)
def test_an_int_that_fits_is_taken(name: str):
    ENTRIES[name](100)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize(
    "name", ["number", "list", "nested list", "full with a dtype", "full_like", "fill_", "pad"]
)
def test_an_integer_is_finite(name: str, value: float):
    with pytest.raises(DTypeError, match="in a tensor of int32"):
        ENTRIES[name](value)


@pytest.mark.parametrize(
    ("dtype", "value", "fits"),
    [
        ("uint8", 255, True),
        ("uint8", 256, False),
        ("uint8", -255, True),  # counts from the end of the range, as in PyTorch
        ("uint8", -256, False),
        ("int8", -129, False),
        ("int64", 2**63 - 1, True),
        ("int64", 2**63, False),
        ("uint64", 2**64 - 1, True),
        ("int64", 16777217.0, True),
        ("int32", 1e10, False),
        ("bool", 7, True),
    ],
)
def test_limits_of_each_dtype(dtype: str, value: Any, fits: bool):
    makers = (
        lambda: Tensor([value], dtype=dtype),
        lambda: Tensor([[value]], dtype=dtype),
        lambda: Tensor(value, dtype=dtype),
        lambda: Tensor.full((1,), value, dtype=dtype),
    )
    for make in makers:
        if not fits:
            with pytest.raises(UsageError, match="fit"):
                make()
            continue
        wanted = np.array(int(value) % 2**64, np.uint64).astype(dtype).item()
        if dtype in ("int64", "bool"):
            wanted = np.array(value).astype(dtype).item()
        assert np.ravel(make().numpy()).tolist() == [wanted]


@pytest.mark.parametrize("value", [0.1, 1e300, 1 / 3, 16777217.0, 5e-324, math.pi])
def test_doubles_keep_all_digits(value: float):
    nested = Tensor([[value], [0.5]], dtype="float64")
    for made in (
        Tensor([value], dtype="float64"),
        Tensor([1, value], dtype="float64")[1:],
        Tensor((value,), dtype="float64"),
        Tensor([np.float64(value)]),
        Tensor(np.float64(value)),
        Tensor(value, dtype="float64"),
        nested[0],
        Tensor.full((1,), value, dtype="float64"),
        Tensor([1.0], dtype="float64").full_like(value),
        Tensor([0.0], dtype="float64") + value,
        Tensor([1.0], dtype="float64").fill_(value),
    ):
        assert np.ravel(made.numpy()).tolist() == [value]


# Where a symbolic number may stand for an int.
SYMBOLIC: dict[str, Callable[[Any], Tensor]] = {
    "number": lambda i: Tensor(i).reshape(1),
    "full": lambda i: Tensor.full((3,), i),
    "full of floats": lambda i: Tensor.full((3,), i + 1, dtype="float32"),
    "full_like": lambda i: Tensor([1.0, 2.0]).full_like(i),
    "fill_": lambda i: Tensor([1, 2]).fill_(i),
    "add": lambda i: Tensor([1, 2]) + i,
    "pad": lambda i: Tensor([1.0]).pad(((1, 2),), value=i),
    "clip": lambda i: Tensor([1, 9]).clip(0, i),
    "where": lambda i: Tensor([True, False]).where(Tensor([1, 2]), i),
    "masked_fill": lambda i: Tensor([1, 2]).masked_fill(Tensor([True, False]), i),
    "tril": lambda i: Tensor.ones(3, 4).tril(i),
    "triu": lambda i: Tensor.ones(3, 4).triu(i - 2),
}


@pytest.mark.parametrize("name", SYMBOLIC)
def test_symbolic_numbers(name: str):
    make = SYMBOLIC[name]
    n = variable("n", 1, 5)
    again = jit(lambda n: make(n))
    for value in (2, 1, 3):
        wanted = make(value).numpy()
        np.testing.assert_array_equal(make(n.bind(value)).numpy(), wanted)
        np.testing.assert_array_equal(again(n.bind(value)).numpy(), wanted)


def test_symbolic_numbers_that_may_not_fit():
    wide = variable("wide", 1, 2**40).bind(3)
    for make in (SYMBOLIC["full"], SYMBOLIC["add"], SYMBOLIC["number"], SYMBOLIC["fill_"]):
        with pytest.raises(ArgumentError, match="does not always fit int32"):
            make(wide)
    assert Tensor.full((2,), wide, dtype="int64").tolist() == [3, 3]


def test_equal_symbolic_sizes_are_equal():
    i, j = variable("i", 1, 9), variable("j", 1, 9)
    assert i + j == j + i
    assert i * j == j * i
    assert i + i == 2 * i
    assert (i + 1) + j == j + (1 + i)
    assert i * 2 + j * 3 - i == 3 * j + i
    assert i + j != i + j + 1
    bound = i.bind(3)
    assert (bound + j, 2) == (j + bound, 2)


def test_slices_that_hold_for_the_values_of_now():
    i = variable("i", 1, 10)
    x = Tensor.arange(10)
    assert x[: i.bind(5)][:3].tolist() == [0, 1, 2]
    assert Tensor.arange(4)[: i.bind(3)].sum().item() == 3
    assert Tensor.arange(4)[: i.bind(4)][1:].numpy().tolist() == [1, 2, 3]
    with pytest.raises(UsageError, match="not always inside"):
        x[: i.bind(2)][:3]
    with pytest.raises(UsageError, match="not always inside"):  # another call has another value
        jit(lambda n: x[:n][:3].contiguous())(i.bind(5))
