"""Vector ranges become lanes, unrolled ranges copies; loads and stores move whole vectors."""

import pytest

from tests.unit.codegen.kernel_parts import F32, I32, Case, at, kernel, put, total
from tests.unit.codegen.oracle import check
from tests.unit.machines import machine
from weft.codegen.analysis.loops import with_loops
from weft.codegen.context import CodegenContext
from weft.codegen.generate import before_opts
from weft.codegen.lower.expand import expand
from weft.codegen.lower.flatten_memory import flatten_memory
from weft.codegen.lower.lanes import across_lanes, broadcast, pick, stride_of, transpose
from weft.codegen.opts.table import Unroll, Vectorize
from weft.ir.build import index, param, range_
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, const, make
from weft.ir.walk import topological
from weft.reference import lanes

MACHINE = machine()


def expanded(root: UOp, **kinds: str) -> UOp:
    """The kernel with ranges r0, r1, … of these kinds, expanded."""
    flat = flatten_memory(before_opts(root, MACHINE), CodegenContext(MACHINE))
    loops = [(number, kinds.get(f"r{number}", kind)) for number, kind in flat.arg[1]]
    return expand(with_loops(flat, loops), CodegenContext(MACHINE))


def nodes(root: UOp, op: int) -> list[UOp]:
    return [node for node in topological(root) if node.op == op]


def copy(address, value) -> UOp:
    """out[address(i, j)] = x[value(i, j)] for i < 4, j < 8"""
    out, x = param(0, F32, (64,)), param(1, F32, (64,))
    i, j = range_(0, 4), range_(1, 8)
    return kernel("copy", put(out, [address(i, j)], at(x, value(i, j)), [i, j]))


def rows(i: UOp, j: UOp) -> UOp:
    return i * 8 + j


def columns(i: UOp, j: UOp) -> UOp:
    return j * 8 + i


def test_a_kernel_of_loops_stays_the_same():
    root = flatten_memory(before_opts(copy(rows, rows), MACHINE), CodegenContext(MACHINE))
    assert expand(root, CodegenContext(MACHINE)) is root


def test_an_unrolled_range_is_a_store_for_each_value():
    root = expanded(copy(rows, rows), r0="unroll")
    assert len(root.src) == 4
    assert root.arg[1] == ((1, "loop"),)
    assert {node.dtype for node in nodes(root, Op.LOAD)} == {F32}


def test_a_contiguous_range_is_one_vector():
    root = expanded(copy(rows, rows), r1="vector")
    (load,), (store,) = nodes(root, Op.LOAD), nodes(root, Op.STORE)
    assert load.dtype is F32.vector(8)
    assert store.src[0].dtype is F32.vector(8)


def test_a_backward_range_is_one_vector_turned():
    root = expanded(copy(rows, lambda i, j: i * 8 + 7 - j), r1="vector")
    (load,), (flipped,) = nodes(root, Op.LOAD), nodes(root, Op.LANES)
    assert load.dtype is F32.vector(8)
    assert flipped.arg == tuple(range(7, -1, -1))


def test_near_addresses_come_with_one_masked_vector():
    root = expanded(copy(rows, lambda i, j: i * 8 + j * 2), r1="vector")
    (load,), (picked,) = nodes(root, Op.LOAD), nodes(root, Op.LANES)
    assert load.dtype is F32.vector(16)
    assert picked.arg == tuple(range(0, 16, 2))
    mask = load.src[0].src[1]
    assert [part.arg for part in mask.src] == [
        address % 2 == 0 and address < 15 for address in range(16)
    ]


def test_far_addresses_come_one_by_one():
    out, x = param(0, F32, (8,)), param(1, F32, (8000,))
    j = range_(0, 8)
    root = expanded(kernel("far", put(out, [j], at(x, j * 1000), [j])), r0="vector")
    assert [node.dtype for node in nodes(root, Op.LOAD)] == [F32] * 8
    (joined,) = nodes(root, Op.VECTOR)
    assert len(joined.src) == 8


def test_a_value_that_all_lanes_share_is_a_scalar():
    out, x, y = param(0, F32, (4, 8)), param(1, F32, (4, 8)), param(2, F32, (4,))
    i, j = range_(0, 4), range_(1, 8)
    store = put(out, [i, j], at(x, i, j) + at(y, i) * 2.0, [i, j])
    root = expanded(kernel("broadcast", store), r1="vector")
    (product,) = nodes(root, Op.MUL)[-1:] and [n for n in nodes(root, Op.MUL) if n.dtype is F32]
    assert product.dtype is F32
    (joined,) = nodes(root, Op.VECTOR)
    assert set(joined.src) == {product}


def test_a_store_across_the_lanes_is_transposed():
    """Eight columns of one element each would be eight times eight stores."""
    out, x = param(0, F32, (8, 8)), param(1, F32, (8, 8))
    i, j = range_(0, 8), range_(1, 8)
    root = kernel("transpose", put(out, [j, i], at(x, i, j), [i, j]))
    made = expanded(root, r0="unroll", r1="vector")
    assert len(made.src) == 8
    assert {store.src[0].dtype for store in made.src} == {F32.vector(8)}


def square_sum(mask: bool = False) -> UOp:
    """out[i, j] = x[i, j] + y[j, i] for i < 8, j < 8, the latter where j < 5 alone if masked"""
    out, x, y = (param(slot, F32, (8, 16)) for slot in range(3))
    i, j = range_(0, 8), range_(1, 8)
    there = at(y, j, i)
    value = at(x, i, j) + ((j < 5).where(there, 0.0) if mask else there)
    return kernel("square_sum", put(out, [i, j], value, [i, j]))


def test_a_load_across_the_lanes_is_transposed():
    """Each of both inputs comes in eight vectors: no lane is loaded by itself."""
    root = expanded(square_sum(), r0="unroll", r1="vector")
    loads = nodes(root, Op.LOAD)
    assert [load.dtype for load in loads] == [F32.vector(8)] * 16
    assert {store.src[1].op for store in root.src} == {Op.ADD}


@pytest.mark.parametrize("opts", ["copies", "rows"])
@pytest.mark.parametrize("is_masked", [False, True])
def test_squares_that_are_loaded_mean_the_same(is_masked: bool, opts: str):
    taken = (Unroll(0), Vectorize(1)) if opts == "copies" else (Unroll(1), Vectorize(0))
    check(Case(square_sum(is_masked), exact=True), MACHINE, taken)


def test_copies_of_another_number_load_lanes_by_themselves():
    out, x = param(0, F32, (4, 8)), param(1, F32, (8, 16))
    i, j = range_(0, 4), range_(1, 8)
    root = kernel("columns", put(out, [i, j], at(x, j, i), [i, j]))
    loads = nodes(expanded(root, r0="unroll", r1="vector"), Op.LOAD)
    assert [load.dtype for load in loads] == [F32] * 32


def test_a_reduction_has_an_accumulator_per_copy_and_lane():
    out, x = param(0, F32, (4,)), param(1, F32, (4, 6, 8))
    i, j, k = range_(0, 4), range_(1, 6), range_(2, 8)
    root = kernel("sum", put(out, [i], total(at(x, i, j, k), j, k), [i]))
    made = expanded(root, r2="vector")
    (reduction,) = nodes(made, Op.REDUCE)
    assert reduction.dtype is F32.vector(8)
    made = expanded(root, r0="unroll")
    assert len(nodes(made, Op.REDUCE)) == 4


def test_a_mask_of_lanes_is_a_vector_of_bools():
    out, x = param(0, F32, (8,)), param(1, F32, (5,))
    j = range_(0, 8)
    root = expanded(kernel("pad", put(out, [j], at(x, j, mask=j < 5), [j])), r0="vector")
    (load,) = nodes(root, Op.LOAD)
    assert [part.arg for part in load.src[0].src[1].src] == [True] * 5 + [False] * 3


@pytest.mark.parametrize(
    "kinds", [{"r0": "vector"}, {"r0": "unroll", "r1": "vector"}, {"r1": "unroll"}]
)
@pytest.mark.parametrize("value", [rows, columns])
@pytest.mark.parametrize("address", [rows, columns])
def test_copies_in_every_direction(address, value, kinds):
    from weft.codegen.opts.table import Unroll, Vectorize

    kind = {"vector": Vectorize, "unroll": Unroll}
    opts = [kind[word](int(name[1:])) for name, word in kinds.items()]
    check(Case(copy(address, value), exact=True), MACHINE, opts)


def evaluated(node: UOp) -> object:
    known: dict[UOp, object] = {}
    for part in topological(node):
        if part.op == Op.CONST:
            known[part] = lanes.constant(part.dtype, part.arg)
        else:
            known[part] = lanes.apply(part, tuple(known[source] for source in part.src))
    return known[node]


def vector(*values: int) -> UOp:
    parts = tuple(const(I32, value) for value in values)
    return make(Op.VECTOR, I32.vector(len(parts)), parts)


@pytest.mark.parametrize("count", [2, 4, 8])
def test_transpose(count: int):
    square = [[10 * row + lane for lane in range(count)] for row in range(count)]
    columns_ = transpose([vector(*row) for row in square])
    assert [evaluated(each) for each in columns_] == list(zip(*square, strict=True))


@pytest.mark.parametrize("count", [2, 3, 4, 6, 8])
def test_across_lanes(count: int):
    numbers = [3 * lane + 1 for lane in range(count)]
    assert evaluated(across_lanes(Op.ADD, vector(*numbers))) == sum(numbers)
    assert evaluated(across_lanes(Op.MAX, vector(*numbers))) == max(numbers)


def test_spread_and_pick():
    scalar = const(I32, 3)
    assert broadcast(scalar, 4) is const(I32.vector(4), 3)
    assert pick(broadcast(scalar, 4), 2) is scalar
    assert pick(vector(5, 6, 7), 1) is const(I32, 6)
    half = make(Op.CAST, F32, (const(dtypes.float16, 1.0),))
    assert broadcast(half, 4).op == Op.CAST  # a half is broadcast before it is converted


def test_stride_of():
    i, j = range_(0, 4), range_(1, 8)
    assert stride_of(i * 8 + j, 1) == 1
    assert stride_of(i * 8 + j, 0) == 8
    assert stride_of(i + index(3), 1) == 0
    assert stride_of(i * 8 + j // 2, 1) is None
