"""Pools between convolutions on matrix units keep channels last, and are what PyTorch's are."""

from collections.abc import Sequence

import numpy as np
import pytest

from tests.end_to_end.small_hopper import (
    BF16,
    TARGET,
    numbers,
    run,
    small_products,  # noqa: F401 -- for every test here
)
from weft import Tensor
from weft.ir.build import param, sink, store
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.schedule.schedule import make_schedule

torch = pytest.importorskip("torch")
IMAGES, CHANNELS, SIDE = 2, 32, 6
POOLED = (IMAGES, CHANNELS, SIDE // 2, SIDE // 2)


def arrays() -> list[np.ndarray]:
    x, slope = numbers(0, IMAGES, CHANNELS, SIDE, SIDE), numbers(2, *POOLED)
    weight = np.eye(CHANNELS, dtype=np.float32)[::-1].reshape(CHANNELS, CHANNELS, 1, 1).copy()
    return [x, weight, slope]


def pooled(x: object, weight: object, library: object = Tensor) -> object:
    y = library.conv2d(x, weight).relu()  # type: ignore[attr-defined]
    pool = library.max_pool2d  # type: ignore[attr-defined]
    return pool(y, 3, 2, padding=1)


def kernels_of(is_gradient: bool, shapes: Sequence[tuple[int, ...]]) -> list[UOp]:
    x, weight, slope = (Tensor(param(slot, BF16, shape)) for slot, shape in enumerate(shapes, 1))
    y = pooled(x, weight)
    if is_gradient:
        (y,) = y.gradient(x, gradient=slope)
    graph = sink(store(param(0, BF16, y.shape), y.uop))
    return list(make_schedule(graph, TARGET).kernels.src)


@pytest.mark.parametrize("is_gradient", [False, True])
def test_values(is_gradient: bool):
    given = arrays()
    tx, tw = (torch.tensor(each, requires_grad=True) for each in given[:2])
    y = torch.nn.functional.max_pool2d(torch.nn.functional.conv2d(tx, tw).relu(), 3, 2, 1)
    y.backward(torch.tensor(given[2]))
    expected = (tx.grad if is_gradient else y.detach()).numpy()
    calls = kernels_of(is_gradient, [each.shape for each in given])
    given = given if is_gradient else given[:2]
    result, _ = run(calls, given, expected.shape)
    np.testing.assert_array_equal(result, expected)


def test_what_the_gradient_reads_has_its_channels_last():
    """Between the first copy of the image and the last store of its gradient."""
    calls = kernels_of(True, [each.shape for each in arrays()])
    stored = [shape_of(call.arg.src[0].src[0].src[0]) for call in calls]
    images = [shape for shape in stored if shape[0] == IMAGES]
    assert all(shape[-1] == CHANNELS for shape in images[:-1]), stored
    assert not any(shape.count(SIDE + 2) > 1 for shape in images)  # none has an edge around it
