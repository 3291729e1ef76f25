"""One token against a long cache: keys and values are read once, for all heads that share them."""

from collections.abc import Callable

import pytest

from tests.unit.codegen.kernel_parts import Case
from tests.unit.codegen.oracle import check
from weft import Tensor
from weft.codegen.analysis.loops import UNROLL, VECTOR, kinds_of, ranges_of
from weft.codegen.choose.chooser import Chooser
from weft.codegen.choose.heuristic import choose_opts
from weft.codegen.choose.simd.streams import stream_contraction
from weft.codegen.generate import before_opts
from weft.codegen.opts.table import Carry, Stage
from weft.ir.build import param, sink, store
from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.schedule.schedule import make_schedule
from weft.target.cpu import cpu_target

WIDE = cpu_target("x86_64", ("avx512f",))
# All but the smallest cache is "far" on this one.
TINY = cpu_target("x86_64", ("avx512f",), cache_bytes=(1 << 10, 1 << 10, 1 << 12))
F32 = dtypes.float32
Shape = tuple[int, ...]


def kernel_of(function: Callable[[Tensor, Tensor], Tensor], x: Shape, y: Shape, dtype: DType):
    a, b = param(0, dtype, x), param(1, dtype, y)
    result = function(Tensor(a), Tensor(b)).uop
    made = make_schedule(sink(store(param(2, result.dtype, result.shape), result)), WIDE)
    (call,) = made.kernels.src
    return call.arg


def scores(heads: int, groups: int, keys: int, size: int, dtype: DType = F32) -> UOp:
    def product(q: Tensor, k: Tensor) -> Tensor:
        return q.dot(k.repeat_interleave(heads // groups, 0).transpose(-1, -2), dtype=F32)

    return kernel_of(product, (heads, 1, size), (groups, keys, size), dtype)


def results(heads: int, groups: int, keys: int, size: int, dtype: DType = F32) -> UOp:
    def product(w: Tensor, v: Tensor) -> Tensor:
        return w.dot(v.repeat_interleave(heads // groups, 0))

    return kernel_of(product, (heads, 1, keys), (groups, keys, size), dtype)


def opts_of(kernel: UOp, target=WIDE):
    return choose_opts(before_opts(kernel, target), target)


@pytest.mark.parametrize("dtype", [F32, dtypes.bfloat16], ids=str)
@pytest.mark.parametrize("make", [scores, results])
@pytest.mark.parametrize("group", [2, 4, 8])
def test_heads_that_share_keys_are_rows_of_one_read(make, group: int, dtype: DType) -> None:
    opts, shaped = opts_of(make(8 * group, 8, 4096, 128, dtype))
    assert not any(node.op == Op.FLOORDIV for node in topological(shaped))
    assert not any(isinstance(opt, Stage) for opt in opts)  # no copy of what is read once
    kinds, ranges = kinds_of(shaped), ranges_of(shaped)
    assert VECTOR in kinds.values()
    unrolled = [ranges[n].src[0].arg for n, kind in kinds.items() if kind == UNROLL]
    assert group in unrolled or any(isinstance(opt, Carry) for opt in opts)


@pytest.mark.parametrize(
    ("kernel", "is_streamed"),
    [
        (scores(32, 8, 4096, 128), True),
        (scores(32, 8, 64, 32), False),  # near
        (scores(8, 8, 4096, 128), False),  # one row
        (scores(128, 8, 4096, 128), False),  # many rows
        (scores(32, 8, 4096, 512), False),  # too long for a row in registers
        (results(32, 8, 4096, 128), True),
        (results(32, 8, 4096, 1024), False),
    ],
)
def test_what_is_streamed(kernel: UOp, is_streamed: bool) -> None:
    chooser = Chooser(before_opts(kernel, WIDE), WIDE)
    assert stream_contraction(chooser) is is_streamed
    assert bool(chooser.opts) is is_streamed


@pytest.mark.parametrize("group", [3, 8])
@pytest.mark.parametrize("dtype", [F32, dtypes.bfloat16], ids=str)
@pytest.mark.parametrize(
    ("make", "keys", "size"), [(scores, 5, 40), (results, 34, 32), (results, 10, 16)]
)
def test_the_program_computes_what_the_kernel_means(make, group, dtype, keys, size) -> None:
    kernel = make(2 * group, 2, keys, size, dtype)
    opts, _ = opts_of(kernel, TINY)
    check(Case(kernel), TINY, opts)
