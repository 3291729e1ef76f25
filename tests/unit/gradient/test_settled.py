"""Values that are compared with their own extremum have the same bits on both sides."""

import numpy as np
import pytest

from weft import Tensor
from weft.gradient.settled import settled
from weft.ir.build import param, reduce_axes, where
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import make

X, Y = (param(slot, dtypes.float32, (4, 4)) for slot in range(2))


@pytest.mark.parametrize(
    "value",
    [X, X * Y, X + Y, -X, where(X < Y, X, Y), X * Y * 2.0, reduce_axes(X, Op.MAX, (0,))],
)
def test_what_rounds_in_one_way_stays(value):
    assert settled(value) is value


@pytest.mark.parametrize(
    "value",
    [X * Y + 1.0, X + Y * 2.0, make(Op.TANH, X.dtype, (X,)), reduce_axes(X, Op.ADD, (0,))],
)
def test_what_may_round_otherwise_is_staged(value):
    assert settled(value) is make(Op.STAGE, value.dtype, (value,), ("global", ()))


def test_integers_are_exact():
    count = param(0, dtypes.int32, (4,))
    assert settled(count * count + 1) is count * count + 1


def test_only_what_is_rounded_is_kept():
    value = X * Y + 1.0
    wide = make(Op.EXPAND, X.dtype, (make(Op.RESHAPE, X.dtype, (value,), (1, 4, 4)),), (9, 4, 4))
    found = settled(where(wide < 0.0, wide.const_like(0), wide))
    staged = {node for node in (found.src[2].src[0].src[0],) if node.op == Op.STAGE}
    assert {node.src[0] for node in staged} == {value}


def parts(seed):
    rng = np.random.default_rng(seed)
    return [Tensor(rng.normal(size=(17, 17)).astype(np.float32)) for _ in range(3)]


def shifted(a, b, c):
    """A product and a sum that one kernel sees side by side, and another one does not."""
    return (a * b.tanh()).roll(2, 0) + c


def greatest(x):
    return x.max(0)


def greatest_so_far(x):
    return x.cummax(0)[0][-1]


def scattered(x):
    lowest = Tensor(np.full((1, 17), -100.0, np.float32))
    rows = Tensor(np.zeros((17, 17), np.int32))
    return lowest.scatter_reduce(0, rows, x, "amax", include_self=True)[0]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("reduction", [greatest, greatest_so_far, scattered])
def test_each_maximum_has_its_element(seed, reduction):
    a, b, c = parts(seed)
    weights = np.arange(1, 18, dtype=np.float32)
    total = (reduction(shifted(a, b, c)) * Tensor(weights)).sum()
    slope = total.gradient(a)[0].numpy()  # before the sums are memory for other reasons
    chosen = (np.argmax(shifted(a, b, c).numpy(), 0) - 2) % 17, range(17)
    wanted = np.zeros((17, 17))
    wanted[chosen] = b.tanh().numpy()[chosen] * weights
    assert np.allclose(slope, wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_positions_of_the_greatest_so_far(seed):
    a, b, c = parts(seed)
    x = shifted(a, b, c)
    addresses = x.cummax(0)[1].numpy()  # before x is memory
    exact = x.numpy()
    assert np.array_equal(np.take_along_axis(exact, addresses, 0), np.maximum.accumulate(exact, 0))
