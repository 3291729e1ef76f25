"""Two products and the softmax between them: tiles and blocks that the heuristic chooses."""

import math

import pytest

from tests.unit.codegen.kernel_parts import Case
from tests.unit.codegen.oracle import check
from weft import Tensor
from weft.codegen.analysis.loops import nodes_of, ranges_of
from weft.codegen.choose.choose_opts import choose_opts
from weft.codegen.choose.heuristic import choose_opts as chosen
from weft.codegen.context import CodegenContext
from weft.codegen.generate import before_opts
from weft.codegen.opts.table import Carry, Join, Stage
from weft.ir.build import param, sink, store
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.reduction.contraction import factors_of
from weft.ir.uop import UOp
from weft.schedule.schedule import make_schedule
from weft.support.settings import Context
from weft.target.cpu import cpu_target

F32 = dtypes.float32
WIDE = cpu_target("x86_64", ("avx512f",))
NARROW = cpu_target("x86_64", ("avx2",))


def attention(queries: int, keys: int, size: int, is_causal: bool, target=WIDE, dtype=F32) -> UOp:
    """The kernel of one head."""
    q, k, v = (param(slot, dtype, (n, size)) for slot, n in enumerate((queries, keys, keys)))
    scores = Tensor(q).dot(Tensor(k).transpose(-1, -2), dtype=F32) / math.sqrt(size)
    if is_causal:
        i, j = Tensor.arange(queries).reshape(queries, 1), Tensor.arange(keys).reshape(1, keys)
        scores = (j <= i).where(scores, -math.inf)
    out = (scores.softmax(-1).cast(dtype) @ Tensor(v)).uop
    with Context(FUSE_PRODUCTS="always"):
        made = make_schedule(sink(store(param(3, dtype, (queries, size)), out)), target)
    (call,) = made.kernels.src
    return call.arg


@pytest.mark.parametrize("target", [WIDE, NARROW], ids=["avx512", "avx2"])
@pytest.mark.parametrize(
    "sizes", [(32, 256, 64), (40, 1000, 64), (100, 1021, 80), (64, 300, 20), (64, 65, 16)]
)
def test_scores_weights_and_queries_stay_near(target, sizes: tuple[int, int, int]) -> None:
    opts, _ = chosen(before_opts(attention(*sizes, True, target), target), target)
    assert sum(isinstance(opt, Stage) for opt in opts) == 3
    assert [len(opt.ranges) for opt in opts if isinstance(opt, Join)] == [3]
    assert sum(isinstance(opt, Carry) for opt in opts) == 1


@pytest.mark.parametrize("dtype", [dtypes.bfloat16, dtypes.float16], ids=str)
def test_small_floats_are_converted_once_for_a_block(dtype) -> None:
    """Keys, values and rounded weights are blocks too: no product computes a factor."""
    kernel = before_opts(attention(100, 1021, 80, True, dtype=dtype), WIDE)
    opts, shaped = chosen(kernel, WIDE)
    assert sum(isinstance(opt, Stage) for opt in opts) == 6
    assert sum(isinstance(opt, Carry) for opt in opts) == 1
    products = [factors for node in nodes_of(shaped) if (factors := factors_of(node)) is not None]
    assert products
    assert all(factor.op == Op.READ for factors in products for factor in factors)


def test_tiles_share_keys_that_are_far_away() -> None:
    near, far = (
        chosen(before_opts(attention(1024, keys, 64, False), WIDE), WIDE)[1]
        for keys in (512, 8192)
    )
    assert len(ranges_of(far)) > len(ranges_of(near))  # a loop over the tiles of a block


def test_blocks_behind_the_diagonal_are_left_out() -> None:
    kernel = before_opts(attention(512, 512, 64, True), WIDE)
    shaped = choose_opts(kernel, CodegenContext(WIDE, None))
    assert any(r.src[0].ranges for r in ranges_of(shaped).values())


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("sizes", [(8, 100, 8), (17, 97, 8), (16, 65, 9)])
def test_the_program_computes_what_the_kernel_means(
    sizes: tuple[int, int, int], is_causal: bool
) -> None:
    check(Case(attention(*sizes, is_causal)), WIDE, None)
