"""The schedule of contractions: every shape of it gives what the kernel means, on small caches."""

from collections.abc import Callable

import pytest

from tests.unit.codegen.kernels import Case
from tests.unit.codegen.oracle import check
from tests.unit.machines import machine
from weft import Tensor, dtypes
from weft.codegen.choose import heuristic
from weft.codegen.choose.simd.register_tile import Tile, best_tile
from weft.codegen.context import CodegenContext
from weft.codegen.lower.normalize_kernel import normalize_kernel
from weft.codegen.opts.table import (
    Accumulate,
    Merge,
    Opt,
    Order,
    Split,
    Stage,
    Unroll,
    Vectorize,
)
from weft.ir.build import Size, param, sink, store, variable
from weft.ir.dtypes import DType
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.schedule.schedule import make_schedule
from weft.target.compute import Simd
from weft.target.target import Costs
from weft.tensor.methods.matmul import contract
from weft.tensor.neural.windows import windows

# Four lanes, and a second cache that holds 400 elements of a panel.
MACHINE = machine(
    vector_bits=128, units=2, cache_bytes=(1 << 10, 4 << 10, 1 << 20), costs=Costs(launch=0.0)
)

Function = Callable[..., Tensor]


def weight_slope(x: Tensor, y: Tensor, stride: int = 1) -> Tensor:
    """(in, taps…, out): windows of x by y, summed over the batch and positions."""
    seen = windows(x, (3, 3), (stride, stride), (1, 1)).permute(1, 4, 5, 0, 2, 3)
    return contract(seen.unsqueeze(3), y.transpose(0, 1), (4, 5, 6), None)


SHAPES: dict[str, tuple[Function, tuple[tuple[int, ...], ...]]] = {
    "plain": (lambda x, y: x @ y, ((32, 24), (24, 16))),
    "uneven everywhere": (lambda x, y: x @ y, ((19, 23), (23, 21))),
    "left transposed": (lambda x, y: x.T @ y, ((24, 20), (24, 16))),
    "right transposed": (lambda x, y: x @ y.T, ((20, 24), (18, 24))),
    "both transposed": (lambda x, y: x.T @ y.T, ((24, 20), (16, 24))),
    "long reduction": (lambda x, y: x @ y, ((17, 120), (120, 9))),
    "long reduction and more": (lambda x, y: (x @ y + 1).relu(), ((17, 120), (120, 9))),
    "batch": (lambda x, y: x @ y, ((3, 16, 10), (3, 10, 12))),
    "few rows": (lambda x, y: x @ y, ((2, 24), (24, 40))),
    "few columns": (lambda x, y: x @ y, ((40, 24), (24, 3))),
    "five columns": (lambda x, y: x @ y, ((20, 24), (24, 5))),
    "computed factors": (lambda x, y: (x + 1) @ (y * 2), ((20, 12), (12, 16))),
    "convolution": (lambda x, y: x.conv2d(y, padding=1), ((2, 3, 6, 6), (18, 3, 3, 3))),
    "few rows, right transposed": (lambda x, y: x @ y.T, ((2, 24), (18, 24))),
    "one row": (lambda x, y: x @ y, ((1, 64), (64, 520))),
    "sum of columns": (lambda x, y: x.sum(0) + y, ((40, 520), (520,))),
    "merged heads": (
        lambda x, y: (x @ y).transpose(1, 2).reshape(2, 8, 24),
        ((2, 3, 8, 8), (2, 3, 8, 8)),
    ),
    "strides of two": (
        lambda x, y: x.conv2d(y, stride=2, padding=1),
        ((1, 2, 9, 9), (16, 2, 3, 3)),
    ),
    "slope of a weight": (weight_slope, ((2, 6, 6, 7), (2, 8, 4, 5))),
    "slope of a weight, one channel": (weight_slope, ((2, 1, 6, 7), (2, 8, 4, 5))),
    "slope of a weight, long": (weight_slope, ((3, 2, 14, 14), (3, 8, 12, 12))),
    "slope of a weight, strides of two": (
        lambda x, y: weight_slope(x, y, 2),
        ((2, 6, 9, 9), (2, 8, 4, 4)),
    ),
    "rows as vectors": (lambda x, y: x.conv2d(y, padding=1), ((2, 1, 4, 7), (18, 1, 3, 3))),
    "short reduction": (lambda x, y: x.conv2d(y, padding=1), ((2, 1, 4, 7), (8, 1, 3, 3))),
    "unaligned columns": (lambda x, y: x @ y, ((70, 8), (8, 19))),
    "wide convolution": (lambda x, y: x.conv2d(y), ((1, 2, 5, 18), (17, 2, 3, 3))),
}

# Overlapping windows, which a machine with room for panels keeps once.
WINDOWS: dict[str, tuple[Function, tuple[tuple[int, ...], ...]]] = {
    "windows": (lambda x, y: x.conv2d(y, padding=1), ((2, 4, 6, 12), (18, 4, 3, 3))),
    "windows that step": (
        lambda x, y: x.conv2d(y, stride=2, padding=2),
        ((1, 2, 12, 15), (20, 2, 5, 5)),
    ),
    "windows of some lanes": (
        lambda x, y: x.conv2d(y, padding=1),
        ((1, 3, 6, 6), (24, 3, 3, 3)),
    ),
}
# Rows of the result that are shorter than a vector, and not a multiple of those in a tile.
SHORT_ROWS = (lambda x, y: x.conv2d(y, padding=1), ((1, 4, 7, 7), (18, 4, 3, 3)))
ROOMY = machine(vector_bits=128, cache_bytes=(32 << 10, 1 << 20, 1 << 24), local_bytes=1 << 19)


def kernel_of(name: str, dtype: DType = dtypes.float32) -> UOp:
    return of(*SHAPES[name], dtype)


def of(
    function: Function, shapes: tuple[tuple[Size, ...], ...], dtype: DType = dtypes.float32
) -> UOp:
    """The last kernel of a function."""
    inputs = [param(slot, dtype, shape) for slot, shape in enumerate(shapes, 1)]
    result = function(*map(Tensor, inputs))
    graph = sink(store(param(0, result.dtype, result.shape), result.uop))
    *_, call = make_schedule(graph, MACHINE).kernels.src
    kernel: UOp = call.arg
    return kernel


def schedule(name: str) -> tuple[Opt, ...]:
    kernel = normalize_kernel(kernel_of(name), CodegenContext(MACHINE))
    return heuristic.choose_opts(kernel, MACHINE)[0]


@pytest.mark.parametrize("name", SHAPES)
def test_gives_what_the_kernel_means(name: str, seed: int) -> None:
    check(Case(kernel_of(name), exact=False), MACHINE, None, seed)


@pytest.mark.parametrize("dtype", [dtypes.float64, dtypes.int32, dtypes.float16])
def test_other_dtypes(dtype: DType, seed: int) -> None:
    check(Case(kernel_of("uneven everywhere", dtype), exact=False), MACHINE, None, seed)


def tiled_row(*sizes: Size) -> int:
    """The range of rows that a tile is cut from, in a product of (…, 24) by (24, 16)."""
    kernel = of(lambda x, y: x @ y, ((*sizes, 24), (24, 16)))
    opts = heuristic.choose_opts(normalize_kernel(kernel, CodegenContext(MACHINE)), MACHINE)[0]
    return min(opt.range for opt in opts if isinstance(opt, Split) and opt.range < len(sizes))


def test_a_tile_lies_over_rows_that_are_known_to_be_there() -> None:
    """Symbolic rows may be few: known ones are better, and inner symbolic ones than outer ones."""
    batch, time = variable("batch", 1, 4096), variable("time", 1, 4096)
    assert tiled_row(batch, 40) == 1
    assert tiled_row(40, batch) == 0
    assert tiled_row(batch, time) == 1
    assert tiled_row(batch, 2) == 0


def _is_stage(opt: Opt, kind: str) -> bool:
    return isinstance(opt, Stage) and opt.node[0] == kind


def test_a_panel_is_filled_where_the_factor_is_not_contiguous() -> None:
    assert any(_is_stage(opt, "factor") for opt in schedule("right transposed"))


def test_a_long_reduction_goes_on_in_its_result() -> None:
    assert any(isinstance(opt, Accumulate) for opt in schedule("long reduction"))


def test_a_reduction_of_several_ranges_is_cut_more_than_once() -> None:
    assert sum(isinstance(opt, Accumulate) for opt in schedule("slope of a weight, long")) == 2


def test_a_panel_serves_the_taps_of_a_window() -> None:
    """Its fill stands outside of them: rows of taps come behind the blocks of the reduction."""
    opts = schedule("slope of a weight, long")
    order = next(opt.ranges for opt in opts if isinstance(opt, Order))
    blocks = [order.index(opt.range) for opt in opts if isinstance(opt, Accumulate)]
    assert max(blocks) < max(order.index(tap) for tap in (1, 2) if tap in order)


def test_rows_of_a_result_have_lanes_to_spare() -> None:
    opts = schedule("rows as vectors")
    assert opts[0] == Split(3, 4, "mask")
    assert not any(isinstance(opt, Merge) and opt.outer == 2 for opt in opts)  # no rows joined


def stage_of(name: str) -> tuple[Stage, tuple[Opt, ...]]:
    opts = heuristic.choose_opts(
        normalize_kernel(of(*WINDOWS[name]), CodegenContext(ROOMY)), ROOMY
    )[0]
    (stage,) = (opt for opt in opts if _is_stage(opt, "factor"))
    return stage, opts


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_give_what_the_kernel_means(name: str, seed: int) -> None:
    check(Case(of(*WINDOWS[name]), exact=False), ROOMY, None, seed)


def test_overlapping_windows_are_kept_once() -> None:
    """Rows of the result are one range, and so is each loop of the reduction that still merges."""
    stage, opts = stage_of("windows")
    ((position, tap),) = [each for each in stage.ranges if isinstance(each, tuple)]
    assert tap == 5
    assert Merge(position, 3) in opts
    assert Unroll(6, sequential=True) in opts


def test_windows_that_step_are_rows_of_their_own() -> None:
    stage, opts = stage_of("windows that step")
    ((position, _),) = [each for each in stage.ranges if isinstance(each, tuple)]
    assert not any(isinstance(opt, Merge) and opt.outer == position for opt in opts)


def test_short_rows_of_a_result_share_a_tile(seed: int) -> None:
    wide = machine(ROOMY, vector_bits=256)
    kernel = of(*SHORT_ROWS)
    opts = heuristic.choose_opts(normalize_kernel(kernel, CodegenContext(wide)), wide)[0]
    assert Split(2, 8, "mask") in opts  # the lanes of a row, one of them to spare
    assert Split(1, 2) in opts
    check(Case(kernel, exact=False), wide, None, seed)


def test_short_reductions_with_few_rows_have_no_panel() -> None:
    assert not any(_is_stage(opt, "factor") for opt in schedule("short reduction"))


POOLS: dict[str, tuple[Function, tuple[tuple[int, ...], ...]]] = {
    "greatest": (lambda x: x.max_pool2d(2), ((2, 3, 8, 14),)),
    "greatest, uneven": (lambda x: x.max_pool2d(3, 2, padding=1), ((2, 3, 7, 9),)),
    "where": (lambda x: x.max_pool2d(2, return_indices=True)[1], ((2, 3, 6, 14),)),
    "one axis": (lambda x: x.reshape(6, 9, 4).sum(2), ((6, 36),)),
    "slope": (
        lambda x, y: (x == y.reshape(3, 7, 1).expand(3, 7, 2).reshape(3, 14)).where(x, 0),
        ((3, 14), (3, 7)),
    ),
    "zeros between": (
        lambda x: x.unsqueeze(2).pad([(0, 0), (0, 0), (1, 0)]).reshape(3, 38) + 1,
        ((3, 19),),
    ),
}


@pytest.mark.parametrize("name", POOLS)
def test_short_reductions_and_masks_of_copies(name: str, seed: int) -> None:
    check(Case(of(*POOLS[name]), exact=False), MACHINE, None, seed)


def test_a_short_reduction_is_written_out() -> None:
    kernel = normalize_kernel(of(*POOLS["greatest"]), CodegenContext(MACHINE))
    opts = heuristic.choose_opts(kernel, MACHINE)[0]
    reduced = {r.arg for node in topological(kernel) if node.op == Op.REDUCE for r in node.src[1:]}
    assert reduced <= {opt.range for opt in opts if isinstance(opt, Unroll)}
    assert any(isinstance(opt, Vectorize) for opt in opts)


def test_small_factors_are_read_where_they_are() -> None:
    assert not any(_is_stage(opt, "factor") for opt in schedule("batch"))


def test_rows_are_kept_for_what_computes_them_again(seed: int) -> None:
    kernel = of(lambda x: x.softmax(-1), ((5, 24),))
    assert any(_is_stage(opt, "again") for opt in heuristic.choose_opts(kernel, MACHINE)[0])
    check(Case(kernel, exact=False), MACHINE, None, seed)


@pytest.mark.parametrize("shape", [(16, 8), (12, 20), (2, 8, 8), (3, 5)])
def test_transposed_copies(shape: tuple[int, ...], seed: int) -> None:
    check(Case(of(lambda x: x.transpose(-1, -2) * 2, (shape,)), exact=True), MACHINE, None, seed)


@pytest.mark.parametrize("step", [2, 3, 4, 5])
def test_strided_reads(step: int, seed: int) -> None:
    check(Case(of(lambda x: x[:, ::step] + 1, ((3, 37),)), exact=True), MACHINE, None, seed)


def test_tiles_waste_little() -> None:
    avx512 = Simd(vector_registers=32)
    tile = best_tile(1000, 1000, 16, avx512, 8)
    covered = (
        -(-1000 // tile.rows) * tile.rows * -(-1000 // (16 * tile.vectors)) * 16 * tile.vectors
    )
    assert covered < 1.03 * 1000 * 1000
    assert best_tile(64, 112, 16, avx512, 8) == Tile(3, 7)  # no lane too many
    assert best_tile(3, 16, 16, avx512, 8).vectors == 1


def shaped(function: Function, shapes: tuple[tuple[int, ...], ...]) -> tuple[Opt, ...]:
    kernel = normalize_kernel(of(function, shapes), CodegenContext(MACHINE))
    return heuristic.choose_opts(kernel, MACHINE)[0]


@pytest.mark.parametrize("rows", [8, 16, 20, 24, 48, 50, 96, 100])
@pytest.mark.parametrize("reduction", [24, 100])
def test_copied_rows(rows: int, reduction: int, seed: int) -> None:
    shapes = ((reduction, rows), (reduction, 16))
    check(Case(of(lambda x, y: x.T @ y, shapes), exact=False), MACHINE, None, seed)


def test_a_copy_of_rows_has_lanes_where_tiles_divide_them() -> None:
    opts = shaped(lambda x, y: x.T @ y, ((24, 96), (24, 16)))
    stages = [opt for opt in opts if _is_stage(opt, "factor")]
    assert len([opt for opt in opts if isinstance(opt, Vectorize)]) == len(stages) + 1


@pytest.mark.parametrize("columns", [52, 68, 76, 92])
def test_a_prime_number_of_panels(columns: int, seed: int) -> None:
    shapes = ((20, 24), (columns, 24))
    check(Case(of(lambda x, y: x @ y.T, shapes), exact=False), MACHINE, None, seed)


def test_slow_functions_of_the_result_are_written_once(seed: int) -> None:
    function, shapes = (lambda x, y: (x @ y).exp()), ((20, 12), (12, 16))
    assert any(_is_stage(opt, "reduction") for opt in shaped(function, shapes))
    check(Case(of(function, shapes), exact=False), MACHINE, None, seed)


def test_lanes_do_not_jump_where_another_loop_is_contiguous() -> None:
    kernel = normalize_kernel(
        of(lambda x, y: x @ y, ((4, 4096), (4096, 4))), CodegenContext(MACHINE)
    )
    opts, _ = heuristic.choose_opts(kernel, MACHINE)
    assert (
        Vectorize(1) in opts
    )  # the columns, not the reduction, along which one factor jumps by 4
