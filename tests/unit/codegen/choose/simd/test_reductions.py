"""Reductions are shaped so that memory is read in its order, and give what their kernels mean."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.unit.codegen.choose.simd.test_contraction import MACHINE, of
from tests.unit.codegen.kernels import Case
from tests.unit.codegen.oracle import check
from tests.unit.machines import machine
from weft import Tensor
from weft.codegen.analysis.loops import UNROLL, extent_of, kinds_of, ranges_of
from weft.codegen.choose import heuristic
from weft.codegen.context import CodegenContext
from weft.codegen.lower.normalize_kernel import normalize_kernel
from weft.codegen.opts.table import Accumulate, Nest, Opt, Stage, Vectorize
from weft.ir.uop import UOp
from weft.target.target import Target

SHAPES: dict[str, tuple[Callable[[Tensor], Tensor], tuple[int, ...]]] = {
    "rows": (lambda x: x.sum(1), (6, 1024)),
    "rows that no number of accumulators divides": (lambda x: x.sum(1), (6, 83)),
    "rows of a few vectors": (lambda x: x.max(1), (9, 13)),
    "rows of two wide vectors": (lambda x: x.sum(1), (11, 24)),
    "rows of a vector": (lambda x: x.sum(1), (11, 4)),
    "rows shorter than a vector": (lambda x: x.sum(1), (11, 3)),
    "one row": (lambda x: x.square().sum(), (1000,)),
    "columns in registers": (lambda x: x.sum(0), (50, 14)),
    "columns of a vector": (lambda x: x.min(0), (50, 4)),
    "columns of a batch": (lambda x: (x * x).sum(1), (3, 20, 8)),
    "greatest of long columns": (lambda x: x.max(0), (40, 520)),
    "product of long columns": (lambda x: x.prod(0) + 1, (40, 520)),
    "long columns of a batch": (lambda x: x.sum(1), (2, 40, 520)),
    "softmax of columns": (lambda x: x.softmax(0), (12, 10)),
    "softmax of short rows": (lambda x: x.softmax(1), (12, 10)),
}


WIDE = machine(MACHINE, vector_bits=512)


def shaped(name: str, target: Target = MACHINE) -> tuple[tuple[Opt, ...], UOp]:
    function, shape = SHAPES[name]
    kernel = normalize_kernel(of(function, (shape,)), CodegenContext(target))
    return heuristic.choose_opts(kernel, target)


def unrolled(kernel: UOp) -> list[int]:
    kinds, ranges = kinds_of(kernel), ranges_of(kernel)
    return [extent_of(ranges[n]) or 0 for n, kind in kinds.items() if kind == UNROLL]


@pytest.mark.parametrize("name", SHAPES)
def test_gives_what_the_kernel_means(name: str, seed: int) -> None:
    function, shape = SHAPES[name]
    check(Case(of(function, (shape,)), exact=False), MACHINE, None, seed)


@pytest.mark.parametrize("name", SHAPES)
def test_with_wide_vectors(name: str, seed: int) -> None:
    function, shape = SHAPES[name]
    check(Case(of(function, (shape,)), exact=False), WIDE, None, seed)


def test_a_row_has_several_accumulators_and_is_read_alone() -> None:
    assert unrolled(shaped("rows")[1]) == [8]


def test_short_rows_are_read_together() -> None:
    assert unrolled(shaped("rows of two wide vectors", WIDE)[1]) == [4, 2]


def test_all_columns_are_kept_where_they_fit() -> None:
    assert unrolled(shaped("columns in registers")[1]) == [4]


def test_reductions_of_every_kind_go_on_in_their_result() -> None:
    for name in ("greatest of long columns", "product of long columns"):
        assert any(isinstance(opt, Accumulate) for opt in shaped(name)[0]), name


def test_the_block_of_a_reduction_stands_inside_the_batch() -> None:
    opts, kernel = shaped("long columns of a batch")
    blocks = [opt.range for opt in opts if isinstance(opt, Accumulate)]
    order = list(kinds_of(kernel))
    assert len(blocks) == 1
    assert order.index(0) < order.index(blocks[0])


def test_what_lies_along_other_loops_is_not_shared() -> None:
    assert not any(isinstance(opt, Stage) for opt in shaped("softmax of columns")[0])


def test_what_uses_a_row_again_stands_inside() -> None:
    kernel = normalize_kernel(
        of(lambda x, y: x @ y, ((8, 64), (64, 520))), CodegenContext(MACHINE)
    )
    opts, kernel = heuristic.choose_opts(kernel, MACHINE)
    (block,) = [opt.range for opt in opts if isinstance(opt, Accumulate)]
    order = list(kinds_of(kernel))
    assert order.index(block) < order.index(0)


def test_slow_functions_of_short_rows_have_lanes() -> None:
    opts, _ = shaped("softmax of short rows")
    assert any(isinstance(opt, Stage) and opt.node[0] == "again" for opt in opts)
    assert len([opt for opt in opts if isinstance(opt, Vectorize)]) == 2  # the sum and the store


@pytest.mark.parametrize(
    "shape", [(40, 1 << 18), (2_097_169,), (3, 700_001), (700_001, 3)], ids=str
)
def test_long_sums_are_sums_of_blocks(shape: tuple[int, ...]) -> None:
    function = (lambda x: x.sum(0)) if shape[-1] == 3 else (lambda x: x.sum(-1))
    kernel = normalize_kernel(of(function, (shape,)), CodegenContext(MACHINE))
    opts, _ = heuristic.choose_opts(kernel, MACHINE)
    assert any(isinstance(opt, Nest) for opt in opts)
    values = np.random.default_rng(0).random(shape, dtype=np.float32)
    found, exact = function(Tensor(values)).numpy(), function(values.astype(np.float64))
    np.testing.assert_allclose(found, exact, rtol=6e-7)


def test_short_sums_and_other_reductions_are_not_nested() -> None:
    for function, shape in ((lambda x: x.sum(1), (6, 1024)), (lambda x: x.max(), (1 << 21,))):
        kernel = normalize_kernel(of(function, (shape,)), CodegenContext(MACHINE))
        opts, _ = heuristic.choose_opts(kernel, MACHINE)
        assert not any(isinstance(opt, Nest) for opt in opts)


# ---- what lies along another loop than that of the lanes


def mixed(columns: Tensor, rows: Tensor, slow: Tensor) -> Tensor:
    """Rows of results, of columns, of rows, and of what is the same for each of a batch."""
    return columns.transpose(1, 2) * rows * slow.exp()


def test_columns_beside_rows_are_transposed_when_they_are_loaded() -> None:
    kernel = normalize_kernel(
        of(mixed, ((3, 32, 80), (3, 80, 32), (3, 1, 32))), CodegenContext(WIDE)
    )
    opts, shaped = heuristic.choose_opts(kernel, WIDE)
    assert any(isinstance(opt, Vectorize) for opt in opts)
    assert unrolled(shaped) == [16]
    check(Case(kernel, exact=False), WIDE, None)


def gated(q: Tensor, k: Tensor, decay: Tensor) -> Tensor:
    """Scores of chunks of tokens, each feature with a decay of its own."""
    scores = q.unsqueeze(2) * k.unsqueeze(1) * decay.movedim(1, -1)
    return scores.sum(-1)


def test_rows_share_what_lanes_scatter() -> None:
    """Keys lie along features, which are summed, and lanes are along keys."""
    shapes = ((2, 12, 72), (2, 16, 72), (2, 72, 12, 16))
    kernel = normalize_kernel(of(gated, shapes), CodegenContext(WIDE))
    opts, shaped = heuristic.choose_opts(kernel, WIDE)
    assert any(isinstance(opt, Vectorize) for opt in opts)
    assert WIDE.compute.unrolled_rows in unrolled(shaped)
    check(Case(kernel, exact=False), WIDE, None)
