"""Values that readers compute again: all parts of an activation but one, none that is costly."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from weft import Tensor
from weft.ir.build import param, sink, store
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.schedule.schedule import make_schedule
from weft.target.cuda import cuda_target

CUDA = cuda_target("sm_90a")


def layer(activation: Callable[[Tensor], Tensor], rows: int, size: int) -> tuple[UOp, ...]:
    """The slopes of two layers with an activation between them."""
    x, up, down = (
        Tensor(param(n, dtypes.bfloat16, shape))
        for n, shape in enumerate(((rows, size), (size, 4 * size), (4 * size, size)))
    )
    loss = (activation(x @ up) @ down).float().square().sum()
    found = loss.gradient(x, up, down)
    stores = [store(param(3 + n, g.dtype, g.shape), g.uop) for n, g in enumerate(found)]
    return tuple(stores)


def outputs(stores: tuple[UOp, ...], target=CUDA) -> list[int]:
    """How many values of the size of the inner layer each kernel writes."""
    made = make_schedule(sink(*stores), target)
    return [
        len([s for s in call.arg.src if s.op == Op.STORE])
        for call in made.kernels.src
        if shape_of(call.arg.src[0].src[0].src[0])[-1:] == (4 * 768,)
    ]


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": lambda x: x.gelu(),
    "exact gelu": lambda x: x.gelu(approximate="none"),
    "silu": lambda x: x.silu(),
    "mish": lambda x: x.mish(),
    "tanh": lambda x: x.tanh(),
    "relu": lambda x: x.relu(),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_keeps_what_it_is_of_and_what_it_gives(name: str) -> None:
    assert max(outputs(layer(ACTIVATIONS[name], 8192, 768))) <= 2


def test_what_is_costly_to_compute_is_read() -> None:
    """Many functions of functions of a value that has few bytes."""

    def costly(x: Tensor) -> Tensor:
        for _ in range(12):
            x = (x.exp() + 1.0).log().sin()
        return x

    assert max(outputs(layer(costly, 8192, 768))) > 2


def test_memory_that_changes_is_not_read_later() -> None:
    """A leaf that the graph writes has other values for readers behind the write."""
    w = Tensor(np.linspace(-1, 1, 64 * 64, dtype=np.float32).reshape(64, 64)).realize()
    x = Tensor(np.linspace(-1, 1, 64 * 64, dtype=np.float32).reshape(64, 64)).realize()
    want = w.numpy() * 2 + 1, np.tanh(w.numpy() * x.numpy()).sum(0)
    y = (w * x).tanh()
    total = y.sum(0)
    w.assign(w * 2 + 1)
    Tensor.realize(w, total, y)
    np.testing.assert_allclose(w.numpy(), want[0], rtol=1e-6)
    np.testing.assert_allclose(total.numpy(), want[1], rtol=1e-5)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_gradients_are_those_of_numbers(name: str) -> None:
    """Large enough for memory to cost more than operations."""
    draw = np.random.default_rng(0)
    x, up, down = (
        Tensor(draw.standard_normal(shape).astype(np.float32) / 8).realize()
        for shape in ((64, 32), (32, 128), (128, 32))
    )

    def loss(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        return (ACTIVATIONS[name](a @ b) @ c).square().sum()

    found = loss(x, up, down).gradient(x, up, down)
    apart = [loss(x, up, down).gradient(each)[0].numpy() for each in (x, up, down)]
    for each, want in zip(found, apart, strict=True):
        np.testing.assert_allclose(each.numpy(), want, rtol=2e-4, atol=1e-4)


def test_a_reduction_is_kept_rather_than_what_it_takes() -> None:
    """Scores of one query, whose keys come from a product: not a value for each of their terms."""
    x, w = (
        Tensor(param(n, dtypes.bfloat16, shape))
        for n, shape in ((0, (1, 2048)), (1, (2048, 2048)))
    )
    keys = Tensor(param(2, dtypes.bfloat16, (32, 1024, 64)))
    query = (x @ w).reshape(32, 1, 64)
    weights = (query.float() * keys.float()).sum(-1).softmax(-1)
    made = make_schedule(sink(store(param(3, weights.dtype, weights.shape), weights.uop)), CUDA)
    sizes = [
        int(np.prod(shape_of(node.src[0].src[0])))
        for call in made.kernels.src
        for node in call.arg.src
        if node.op == Op.STORE
    ]
    assert max(sizes) <= 32 * 1024


def test_products_that_are_rounded_are_kept_rounded() -> None:
    """A normalized convolution and its slopes read it in several kernels: half the bytes."""
    x, w, weights = (
        Tensor(param(n, dtypes.bfloat16, shape))
        for n, shape in enumerate(((128, 64, 28, 28), (256, 64, 1, 1), (128, 256, 28, 28)))
    )
    y = x.conv2d(w).float()
    y = (y - y.mean((0, 2, 3), keepdim=True)) / (y.var((0, 2, 3), keepdim=True) + 1e-5).sqrt()
    (slope,) = (y.bfloat16().relu().float() * weights.float()).sum().gradient(w)
    made = make_schedule(sink(store(param(3, slope.dtype, slope.shape), slope.uop)), CUDA)
    kept = [
        store.src[0].dtype
        for call in made.kernels.src
        for store in call.arg.src
        if math.prod(shape_of(store.src[0].src[0])) == math.prod(y.shape)
    ]
    assert kept == [dtypes.bfloat16] * 3
