"""Convolutions on matrix units of Hopper: what the interpreter computes is what PyTorch does.

Kernels are interpreted as opts have left them, with products of tiles instead of sums; how
such products are copied and multiplied, tests of the pipeline show.
"""

from typing import NamedTuple

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
from weft.codegen.choose.heuristic import choose_opts
from weft.codegen.generate import before_opts
from weft.codegen.opts.table import TensorCore
from weft.ir.build import param, sink, store
from weft.ir.reduction.contraction import is_contraction
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.schedule.layout import align_factors
from weft.schedule.schedule import make_schedule
from weft.target.cuda import cuda_target

torch = pytest.importorskip("torch")
KINDS = ("result", "of the input", "of the weight")


class Case(NamedTuple):
    """Sizes of a convolution: images, channels, outputs, pixels, taps, and how they are taken."""

    images: int
    inputs: int
    outputs: int
    pixels: tuple[int, int]
    taps: tuple[int, int] = (3, 3)
    stride: int = 1
    padding: int = 1
    dilation: int = 1
    groups: int = 1


def convolved(x: object, weight: object, case: Case, library: object = None) -> object:
    options = {
        "stride": case.stride,
        "padding": case.padding,
        "dilation": case.dilation,
        "groups": case.groups,
    }
    conv = library.conv2d if library is not None else Tensor.conv2d  # type: ignore[attr-defined]
    return conv(x, weight, **options)


def arrays_of(case: Case) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The image, the weight and the slope of the result; and what PyTorch makes of them."""
    x = numbers(0, case.images, case.inputs, *case.pixels)
    weight = numbers(1, case.outputs, case.inputs // case.groups, *case.taps)
    tx, tw = (torch.tensor(each, requires_grad=True) for each in (x, weight))
    y = convolved(tx, tw, case, torch.nn.functional)
    slope = numbers(2, *y.shape)
    y.backward(torch.tensor(slope))
    wanted = [y.detach(), tx.grad, tw.grad]
    return [x, weight, slope], [each.bfloat16().float().numpy() for each in wanted]


def kernels_of(case: Case, kind: str, given: list[np.ndarray]) -> list[UOp]:
    """The calls of a convolution or of one of its gradients; argument 0 is the result."""
    x, weight, slope = (
        Tensor(param(slot, BF16, array.shape)) for slot, array in enumerate(given, 1)
    )
    y = convolved(x, weight, case)
    if kind == "result":
        del given[2:]
    else:
        (y,) = y.gradient(x if kind == "of the input" else weight, gradient=slope)
    graph = sink(store(param(0, BF16, y.shape), y.uop))
    return list(make_schedule(graph, TARGET).kernels.src)


# How many kernels of the result, of the slope of the input and of that of the weight are products
# of tiles. Few pixels and images are less than a step of a sum; groups of channels are batches.
CASES = {
    "3 x 3": (Case(2, 24, 24, (5, 6)), (1, 1, 1)),
    "1 x 1": (Case(2, 32, 40, (5, 5), (1, 1), padding=0), (1, 1, 1)),
    "1 x 1, stride 2": (Case(2, 40, 32, (5, 5), (1, 1), 2, 0), (1, 1, 0)),
    "few channels": (Case(2, 3, 32, (6, 6), (4, 4)), (1, 0, 1)),
    "depthwise": (Case(1, 32, 32, (4, 4), groups=32), (0, 0, 0)),
}
LONG = {
    "stride 2": (Case(2, 32, 32, (6, 7), stride=2), (1, 4, 0)),
    "many images": (Case(64, 32, 32, (4, 4), (2, 2), 2, 1), (1, 0, 1)),
    "dilated": (Case(1, 32, 32, (7, 7), dilation=2, padding=2), (1, 1, 0)),
    "no padding, odd channels": (Case(2, 35, 37, (5, 5), padding=0), (1, 1, 0)),
    "groups": (Case(1, 64, 64, (4, 4), groups=2), (0, 0, 0)),
}


def require_values(case: Case, kind: str, count: int) -> None:
    given, wanted = arrays_of(case)
    expected = wanted[KINDS.index(kind)]
    result, found = run(kernels_of(case, kind, given), given, expected.shape)
    np.testing.assert_array_equal(result, expected)
    assert found == count


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, kind: str):
    case, counts = CASES[name]
    require_values(case, kind, counts[KINDS.index(kind)])


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", LONG)
def test_values_of_more(name: str, kind: str):
    case, counts = LONG[name]
    require_values(case, kind, counts[KINDS.index(kind)])


# The convolutions of ResNet-50 with 128 images: channels, outputs, pixels, taps, stride.
RESNET = [
    (64, 64, 56, 1, 1),
    (64, 64, 56, 3, 1),
    (64, 256, 56, 1, 1),
    (256, 64, 56, 1, 1),
    (256, 128, 56, 1, 1),
    (128, 128, 56, 3, 2),
    (128, 512, 28, 1, 1),
    (256, 512, 56, 1, 2),
    (128, 128, 28, 3, 1),
    (256, 256, 14, 3, 1),
    (1024, 256, 14, 1, 1),
    (512, 512, 14, 3, 2),
    (512, 512, 7, 3, 1),
    (512, 2048, 7, 1, 1),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", RESNET)
def test_all_of_a_residual_network_is_on_matrix_units(
    shape: tuple[int, int, int, int, int], kind: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(align_factors, "LEAST_WORK", 1 << 24)
    inputs, outputs, size, taps, stride = shape
    case = Case(128, inputs, outputs, (size, size), (taps, taps), stride, taps // 2)
    pixels = (size - 1) // stride + 1
    x, weight, slope = (
        Tensor(param(slot, BF16, sizes))
        for slot, sizes in enumerate(
            [
                (128, inputs, size, size),
                (outputs, inputs, taps, taps),
                (128, outputs, pixels, pixels),
            ],
            1,
        )
    )
    y = convolved(x, weight, case)
    if kind != "result":
        (y,) = y.gradient(x if kind == "of the input" else weight, gradient=slope)
    target = cuda_target("sm_90a")
    calls = make_schedule(sink(store(param(0, BF16, y.shape), y.uop)), target).kernels.src
    kernels = [before_opts(call.arg, target) for call in calls]
    products = [each for each in kernels if any(map(is_contraction, topological(each)))]
    assert products
    for kernel in products:
        opts, _ = choose_opts(kernel, target)
        assert any(isinstance(opt, TensorCore) for opt in opts), kernel.arg[0]
