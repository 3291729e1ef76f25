"""Indices get 32 or 64 bits, and grid and thread ranges are counters of the machine."""

import pytest

from tests.unit.codegen.kernel_parts import F32, at, kernel, put
from tests.unit.machines import machine
from weft.codegen.analysis.loops import kinds_of, with_loops
from weft.codegen.context import CodegenContext
from weft.codegen.lower.lower_index import bind_hardware, lower_index
from weft.ir.build import index, index_of, load, param, range_, variable, where
from weft.ir.dtypes import INDEX, DType, dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.walk import topological

GROUPS = machine(group_threads=8)
I32, I64 = dtypes.int32, dtypes.int64


def lowered(address: UOp, size: int | UOp, *ranges: UOp) -> UOp:
    """The address of a load, with a width."""
    out, x = param(0, F32, (size,)), param(1, F32, (size,))
    root = kernel("k", put(out, [address], load(index_of(x, [address])), list(ranges)))
    result = lower_index(root, CodegenContext(machine()))
    own = [node for node in topological(result) if node.dtype.kind == INDEX]
    assert all(node.op == Op.CONST or node.op in (Op.PARAM, Op.VARIABLE) for node in own)
    return result.src[0].src[1].src[0].src[2]


@pytest.mark.parametrize(
    ("rows", "dtype"),
    [(1 << 10, I32), ((1 << 31) // 64, I32), ((1 << 31) // 64 + 1, I64), (1 << 40, I64)],
)
def test_an_index_has_the_width_that_its_values_need(rows: int, dtype: DType):
    i, j = range_(0, rows), range_(1, 64)
    assert lowered(i * 64 + j, rows * 64, i, j).dtype is dtype


def test_what_fits_stays_narrow_until_it_meets_what_does_not():
    i, j = range_(0, 1 << 40), range_(1, 64)
    address = lowered(i * 64 + j, 1 << 46, i, j)
    assert [source.dtype for source in address.src] == [I64, I64]
    casts = [node for node in topological(address) if node.op == Op.CAST]
    assert [node.src[0].dtype for node in casts] == [I32]  # the counter of the short loop


def test_both_sides_of_a_choice_and_of_a_comparison_have_one_width():
    i = range_(0, 1 << 40)
    address = lowered(where(i < 5, index(1), i), 1 << 40, i)
    condition, *values = address.src
    assert {value.dtype for value in values} == {I64}
    assert len({source.dtype for source in condition.src}) == 1


def test_a_variable_is_cast_where_it_is_used():
    n = variable("n", 1, 100)
    i = range_(0, 8)
    address = lowered(i + n, 200, i)
    (cast,) = [node for node in topological(address) if node.op == Op.CAST]
    assert cast.src[0] is n and cast.dtype is I32


def bound(kinds: dict[int, str], axes: dict[int, int]) -> tuple[UOp, CodegenContext]:
    out, x = param(0, F32, (6, 8, 4)), param(1, F32, (6, 8, 4))
    ranges = [range_(0, 6), range_(1, 8), range_(2, 4)]
    root = kernel("k", put(out, ranges, at(x, *ranges), ranges))
    root = with_loops(root, [(number, kinds.get(number, kind)) for number, kind in root.arg[1]])
    context = CodegenContext(GROUPS)
    context.thread_axes = axes
    return bind_hardware(root, context), context


def test_grid_and_thread_ranges_are_counters():
    root, context = bound({0: "grid", 1: "thread"}, {1: 0})
    assert kinds_of(root) == {2: "loop"}
    counters = {node.arg for node in topological(root) if node.op == Op.SPECIAL}
    assert len(counters) == 2 and {kind for kind, _ in counters} == {"group", "thread"}
    assert {context.extents[each].arg for each in counters} == {6, 8}


def test_a_kernel_of_loops_stays_as_it_is():
    root, context = bound({}, {})
    assert kinds_of(root) == dict.fromkeys(range(3), "loop")
    assert not context.extents
