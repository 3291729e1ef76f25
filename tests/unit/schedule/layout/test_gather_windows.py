"""Which convolutions are products of rows of windows; what they give, end_to_end tests show."""

import pytest

from weft import Tensor
from weft.ir.build import param, sink, store
from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.schedule.schedule import make_schedule
from weft.target.cpu import cpu_target
from weft.target.cuda import cuda_target

CUDA = cuda_target("sm_90a")
BF16 = dtypes.bfloat16


def kernels(
    channels: int,
    taps: int,
    *,
    size: int = 64,
    stride: int = 1,
    kind: str = "result",
    dtype: DType = BF16,
    target=CUDA,
) -> list[UOp]:
    """The kernels of a convolution of 32 images with 64 outputs."""
    x, weight = (
        Tensor(param(slot, dtype, shape))
        for slot, shape in enumerate(((32, channels, size, size), (64, channels, taps, taps)), 1)
    )
    y = x.conv2d(weight, stride=stride, padding=taps // 2)
    if kind == "of the weight":
        (y,) = y.gradient(weight, gradient=Tensor(param(3, dtype, y.shape)))
    graph = sink(store(param(0, y.dtype, y.shape), y.uop))
    return [call.arg for call in make_schedule(graph, target).kernels.src]


def has_rows(found: list[UOp], shown: int) -> bool:
    """Whether a kernel writes rows of windows that show so many elements, in whole vectors."""
    width = -(-shown // 8) * 8
    written = [shape_of(k.src[0].src[0].src[0]) for k in found if k.src[0].op == Op.STORE]
    return any(len(shape) == 4 and shape[-1] == width for shape in written)


@pytest.mark.parametrize("kind", ["result", "of the weight"])
@pytest.mark.parametrize(
    ("channels", "taps", "stride"), [(3, 7, 2), (3, 3, 1), (4, 5, 1), (4, 3, 1)]
)
def test_windows_of_few_channels_are_rows(channels: int, taps: int, stride: int, kind: str):
    assert has_rows(kernels(channels, taps, stride=stride, kind=kind), channels * taps * taps)


@pytest.mark.parametrize("kind", ["result", "of the weight"])
def test_windows_of_many_channels_are_copied_tap_by_tap(kind: str):
    assert not has_rows(kernels(64, 3, kind=kind), 64 * 9)
    assert not has_rows(kernels(32, 3, kind=kind), 32 * 9)


def test_plain_cores_read_windows_where_they_are():
    assert not has_rows(kernels(3, 7, dtype=dtypes.float32), 147)
    assert not has_rows(kernels(3, 7, target=cpu_target("x86_64", ("avx2",))), 147)


def test_a_row_is_one_run_for_each_line_of_the_image():
    (rows,) = [k for k in kernels(3, 7, stride=2) if shape_of(k.src[0].src[0].src[0])[-1] == 152]
    remainders = [n.src[1].arg for n in topological(rows) if n.op == Op.FLOORMOD]
    assert remainders == [21]
