"""Loops over windows: as long as the window, wherever it lies, with the results of whole rows."""

import itertools
import math

import numpy as np
import pytest

from tests.unit.codegen.kernel_parts import Case
from tests.unit.codegen.oracle import check
from weft import Tensor, dtypes
from weft.codegen.analysis.loops import nodes_of, own_ranges, ranges_of
from weft.codegen.choose.heuristic import choose_opts
from weft.codegen.generate import before_opts
from weft.codegen.opts.narrow import window_of
from weft.codegen.opts.table import Join, Narrow, Split
from weft.ir.build import param, sink, store
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.schedule.schedule import make_schedule
from weft.support.errors import OptRefused
from weft.support.settings import Context
from weft.target.cpu import cpu_target

F32 = dtypes.float32
TARGET = cpu_target("x86_64", ("avx512f",), threads=2)
# The keys that a query sees, and how many that are at most.
WINDOWS = {
    "before": (lambda i, j: (j <= i) & (i - j < 5), 5),
    "around": (lambda i, j: (j < i + 3) & (i < j + 4), 6),
    "ahead": (lambda i, j: (j >= i + 2) & (j < i + 9), 7),
    "far behind": (lambda i, j: (j <= i - 30) & (j > i - 40), 10),
    "moving on": (lambda i, j: (j <= 2 * i) & (j > 2 * i - 6), 6),
    "twice": (lambda i, j: (j <= i) & (i - j < 5) & (i - j < 20) & (j < i + 7), 5),
}
OTHERS = {
    "causal": lambda i, j: j <= i,
    "either": lambda i, j: (j <= i) | (i - j < 5),
    "prefix": lambda i, j: ((j <= i) & (i - j < 5)) | (j < 3),
}


def row_sums(name: str, rows: int, columns: int, op: str) -> UOp:
    """A kernel that reduces what a mask leaves of each row."""
    mask = {**{each: seen for each, (seen, _) in WINDOWS.items()}, **OTHERS}[name]
    x = Tensor(param(0, F32, (rows, columns)))
    i, j = Tensor.arange(rows).reshape(rows, 1), Tensor.arange(columns).reshape(1, columns)
    seen = mask(i, j).where(x, -math.inf if op == "max" else 0.0)
    out = getattr(seen, op)(axis=1).uop
    made = make_schedule(sink(store(param(1, F32, (rows,)), out)), TARGET)
    (call,) = made.kernels.src
    return before_opts(call.arg, TARGET)


def loops_of_rows(kernel: UOp) -> tuple[int, int]:
    """The numbers of the loops over columns and over rows."""
    (reduction,) = (node for node in nodes_of(kernel) if node.op == Op.REDUCE)
    (columns,) = own_ranges(reduction)
    (rows,) = (number for number in ranges_of(kernel) if number != columns.arg)
    return columns.arg, rows


@pytest.mark.parametrize("op", ["max", "sum"])
@pytest.mark.parametrize("sizes", [(48, 48), (46, 48), (60, 31)], ids=str)
@pytest.mark.parametrize("name", WINDOWS)
def test_rows_have_the_results_of_whole_ones(name: str, sizes: tuple[int, int], op: str) -> None:
    kernel = row_sums(name, *sizes, op)
    columns, rows = loops_of_rows(kernel)
    window = window_of(kernel, columns, rows)
    assert window is not None
    assert window.length == WINDOWS[name][1]
    for length, factor in itertools.product((window.length, window.length + 3), (1, 4)):
        tile = [Split(rows, factor, "mask")] if factor > 1 else []
        extra = (factor - 1) * (2 if name == "moving on" else 1)
        check(Case(kernel), TARGET, (*tile, Narrow(columns, rows, length + extra)))


@pytest.mark.parametrize("name", OTHERS)
def test_other_masks_leave_no_window(name: str) -> None:
    kernel = row_sums(name, 48, 48, "max")
    columns, rows = loops_of_rows(kernel)
    assert window_of(kernel, columns, rows) is None
    with pytest.raises(OptRefused, match="no mask leaves"):
        Narrow(columns, rows, 40).apply(kernel)


def test_a_window_that_is_cut_is_refused() -> None:
    kernel = row_sums("before", 48, 48, "sum")
    columns, rows = loops_of_rows(kernel)
    for length, reason in ((4, "no mask leaves"), (48, "no longer than")):
        with pytest.raises(OptRefused, match=reason):
            Narrow(columns, rows, length).apply(kernel)


# ---- attention


def attention(tokens: int, width: int, size: int, has_slopes: bool) -> list[UOp]:
    """The kernels of attention over a window with two products and more."""
    q, k, v, g = (Tensor(param(slot, F32, (2, tokens, size))) for slot in range(4))
    i, j = Tensor.arange(tokens).reshape(tokens, 1), Tensor.arange(tokens).reshape(1, tokens)
    scores = ((j <= i) & (i - j < width)).where(q @ k.transpose(-1, -2), -math.inf)
    out = scores.softmax(-1) @ v
    results = [out, *((out * g).sum().gradient(q, k, v) if has_slopes else ())]
    stores = [store(param(4 + n, F32, x.shape), x.uop) for n, x in enumerate(results)]
    with Context(FUSE_PRODUCTS="always"):
        made = make_schedule(sink(*stores), TARGET)
    kernels = [before_opts(call.arg, TARGET) for call in made.kernels.src]
    return [each for each in kernels if sum(n.op == Op.REDUCE for n in nodes_of(each)) > 1]


def test_blocks_of_a_window_begin_where_it_does() -> None:
    """In the forward kernel and in those of all three gradients."""
    kernels = attention(4096, 512, 64, has_slopes=True)
    assert len(kernels) == 4
    for kernel in kernels:
        opts, _ = choose_opts(kernel, TARGET)
        lengths = {opt.length for opt in opts if isinstance(opt, Narrow)}
        assert lengths == {512 + 32}  # of a window and a tile of queries
        blocks = next(opt.factor for opt in opts if isinstance(opt, Split) and opt.range == 3)
        assert 544 % blocks == 0


def test_a_wide_window_keeps_its_row() -> None:
    (kernel,) = attention(1024, 700, 64, has_slopes=False)
    opts, _ = choose_opts(kernel, TARGET)
    assert any(isinstance(opt, Join) for opt in opts)
    assert not any(isinstance(opt, Narrow) for opt in opts)


@pytest.mark.parametrize(("tokens", "width"), [(200, 9), (130, 30), (333, 64)])
def test_attention_over_a_window_and_its_gradients(tokens: int, width: int) -> None:
    rng = np.random.default_rng(tokens)
    arrays = [rng.standard_normal((2, tokens, 16)).astype(np.float32) for _ in range(4)]
    i, j = Tensor.arange(tokens).reshape(tokens, 1), Tensor.arange(tokens).reshape(1, tokens)
    seen = (j <= i) & (i - j < width)
    found = []
    for setting in ("always", "never"):
        with Context(FUSE_PRODUCTS=setting):
            q, k, v, g = map(Tensor, arrays)
            out = seen.where(q @ k.transpose(-1, -2), -math.inf).softmax(-1) @ v
            found.append([x.numpy() for x in (out, *(out * g).sum().gradient(q, k, v))])
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, atol=1e-4)
