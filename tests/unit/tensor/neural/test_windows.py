"""Windows and what adds them up again: each is the transpose of the other."""

import itertools

import numpy as np
import pytest

from weft.engine.counters import GlobalCounters
from weft.ir.ops import Op
from weft.ir.walk import topological
from weft.tensor import Tensor
from weft.tensor.neural.windows import Frame, apart, summed_windows, windows

KINDS = [
    ((3,), (2,), (1,), (0,), (9,)),
    ((3,), (1,), (1,), (1,), (6,)),
    ((5,), (2,), (1,), (2,), (8,)),
    ((3,), (2,), (2,), (1,), (11,)),
    ((2,), (3,), (1,), (0,), (9,)),
    ((4,), (3,), (2,), (3,), (13,)),
    ((3, 3), (2, 2), (1, 1), (1, 1), (8, 7)),
    ((3, 2), (1, 3), (2, 1), (0, 1), (7, 9)),
    ((2, 3, 2), (1, 2, 2), (1, 1, 1), (0, 1, 0), (4, 5, 6)),
]


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float64)


@pytest.mark.parametrize("kernel, stride, dilation, before, sizes", KINDS)
def test_sums_are_the_transpose_of_windows(kernel, stride, dilation, before, sizes):
    x = draw(2, *sizes)
    padded = np.pad(x, [(0, 0), *((low, 0) for low in before)])
    taken = windows(Tensor(padded), kernel, stride, dilation).numpy()
    taps = draw(*taken.shape, seed=1)
    frame = Frame(kernel, stride, dilation, before)
    found = summed_windows(Tensor(taps), x.shape, frame).numpy()
    assert found.shape == x.shape
    assert (found * x).sum() == (taken * taps).sum()


def scattered(x: np.ndarray, slope: np.ndarray, kernel: int, stride: int, pad: int) -> np.ndarray:
    """The gradient of a max pool, window by window."""
    made = np.zeros_like(x)
    for row, column in itertools.product(*map(range, slope.shape)):
        y, z = row * stride - pad, column * stride - pad
        inside = [
            (i, j)
            for i, j in itertools.product(range(y, y + kernel), range(z, z + kernel))
            if 0 <= i < x.shape[0] and 0 <= j < x.shape[1]
        ]
        made[max(inside, key=lambda index: x[index])] += slope[row, column]
    return made


@pytest.mark.parametrize("kernel, stride, pad", [(3, 2, 1), (3, 1, 0), (2, 2, 0), (4, 3, 2)])
def test_a_slope_goes_to_the_first_of_the_greatest(kernel, stride, pad):
    x = draw(10, 10)  # few numbers, so that some are equal
    leaf = Tensor(x)
    pooled = leaf.max_pool2d(kernel, stride, padding=pad)
    slope = draw(*pooled.shape, seed=1)
    (found,) = (pooled * Tensor(slope)).sum().gradient(leaf)
    np.testing.assert_array_equal(found.numpy(), scattered(x, slope, kernel, stride, pad))


def test_the_gradient_of_a_pool_reads_each_window_a_few_times():
    """Four phases of few taps; not nine taps for each element, most of them zeros."""
    x = Tensor(draw(1, 2, 32, 32).astype(np.float32)).realize()
    (found,) = x.avg_pool2d(3, 2, padding=1).sum().gradient(x)
    assert not [node for node in topological(found.uop) if node.op == Op.SCATTER]
    GlobalCounters.reset()
    found.realize()
    assert GlobalCounters.global_ops < 40 * found.numel()


@pytest.mark.parametrize("ceil_mode", [False, True])
def test_the_slope_of_an_average_knows_what_was_counted(ceil_mode):
    """Pools that differ in nothing but what they count have gradients of their own."""
    x, found = draw(1, 1, 8, 8), {}
    for counts_padding in (True, False):
        leaf = Tensor(x)
        options = {"padding": 1, "ceil_mode": ceil_mode, "count_include_pad": counts_padding}
        pooled = leaf.avg_pool2d(3, 2, **options)
        slope = draw(*pooled.shape, seed=1)
        (given,) = (pooled * Tensor(slope)).sum().gradient(leaf)
        found[counts_padding] = given.numpy()
        np.testing.assert_allclose(
            (found[counts_padding] * x).sum(), (pooled.numpy() * slope).sum()
        )
    assert (found[True] != found[False]).any()


KERNELS = [(4, 2, 1, 1, 0), (3, 2, 1, 1, 1), (2, 3, 0, 1, 0), (3, 2, 1, 2, 1), (3, 4, 0, 1, 3)]


@pytest.mark.parametrize("kernel, stride, pad, dilation, more", KERNELS)
def test_a_transposed_convolution_is_the_transpose_of_one(kernel, stride, pad, dilation, more):
    """Of both operands; integers, so that no sum is rounded."""
    x, weight = draw(2, 3, 5, 4), draw(3, 2, kernel, kernel, seed=1)
    given, by = Tensor(x), Tensor(weight)
    options = {"stride": stride, "padding": pad, "dilation": dilation}
    made = given.conv_transpose2d(by, output_padding=more, **options)
    slope = draw(*made.shape, seed=2)
    of_input, of_weight = (made * Tensor(slope)).sum().gradient(given, by)
    total = (made.numpy() * slope).sum()
    seen = Tensor(slope).conv2d(by, **options).numpy()[:, :, : x.shape[2], : x.shape[3]]
    assert (seen * x).sum() == total
    np.testing.assert_array_equal(of_input.numpy(), seen)
    assert (of_weight.numpy() * weight).sum() == total


def test_a_transposed_convolution_does_not_multiply_zeros():
    x, weight = (
        Tensor(np.ones((1, 8, 8, 8), np.float32)),
        Tensor(np.ones((8, 8, 4, 4), np.float32)),
    )
    made = x.realize().conv_transpose2d(weight.realize(), stride=2, padding=1)
    GlobalCounters.reset()
    made.realize()
    products = 8 * 8 * 8 * 8 * 4 * 4  # of each element with each tap
    assert GlobalCounters.global_ops < 2.6 * products


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
@pytest.mark.parametrize("step, size", [(2, 9), (3, 10), (4, 11)])
def test_phases_are_put_together(dtype, step, size):
    """The last lanes of a row are cut out of a vector that is chosen lane by lane."""
    count = -(-size // step)
    values = np.arange(count * count, dtype=dtype).reshape(count, count)
    base, total, wanted = Tensor(values).realize(), None, np.zeros((size, size), dtype)
    for number, starts in enumerate(itertools.product(range(step), repeat=2), 1):
        part = apart((base + number).contiguous(), (step, step), starts)
        total = part if total is None else total + part
        rows = wanted[starts[0] :: step, starts[1] :: step]
        rows[:] = (values + number)[: rows.shape[0], : rows.shape[1]]
    found = (total.shrink(((0, size), (0, size))) * 2).numpy()
    np.testing.assert_array_equal(found, wanted * 2)
