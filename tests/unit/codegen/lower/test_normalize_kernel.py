"""The form that all other passes rely on: ranges, loads, indices, sums of equal terms."""

from tests.unit.codegen.kernel_parts import F32, I32, at, kernel, put, total
from tests.unit.machines import machine
from weft.codegen.analysis.loops import kinds_of, own_ranges
from weft.codegen.context import CodegenContext
from weft.codegen.lower.normalize_kernel import EXACT_IN_HALF, normalize_kernel
from weft.ir.build import index, index_of, param, range_, reduce_ranges, store, variable
from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import Op
from weft.ir.text import dump, parse
from weft.ir.uop import UOp, make
from weft.ir.walk import topological

CONTEXT = CodegenContext(machine())


def normal(root: UOp) -> UOp:
    return normalize_kernel(root, CONTEXT)


def stored(root: UOp) -> UOp:
    return root.src[0].src[1]


def nodes(root: UOp, op: int) -> list[UOp]:
    return [node for node in topological(root) if node.op == op]


def test_a_range_of_one_iteration_is_its_only_value():
    out, x = param(0, F32, (1, 8)), param(1, F32, (1, 8))
    i, j = range_(0, 1), range_(1, 8)
    root = normal(kernel("copy", put(out, [i, j], at(x, i, j), [i, j])))
    assert kinds_of(root) == {1: "loop"}
    assert "store p0[0, r1] = load p1[0, r1] for r1" in dump(root)


def test_a_symbolic_number_of_iterations_stays_a_range():
    n = variable("n", 1, 8)
    out, x = param(0, F32, (n,)), param(1, F32, (n,))
    i = range_(0, n)
    assert kinds_of(normal(kernel("copy", put(out, [i], at(x, i), [i])))) == {0: "loop"}


def test_ranges_that_the_table_lacks_are_loops_and_those_that_are_gone_are_not_listed():
    out, x = param(0, F32, (8,)), param(1, F32, (8,))
    i = range_(3, 8)
    root = make(Op.KERNEL, dtypes.void, (put(out, [i], at(x, i), [i]),), ("k", ((5, "loop"),)))
    assert kinds_of(normal(root)) == {3: "loop"}


def test_memory_is_read_by_loads_alone():
    out, x = param(0, F32, (8,)), param(1, F32, (8,))
    i = range_(0, 8)
    address = index_of(x, [i])
    root = normal(kernel("square", put(out, [i], make(Op.MUL, F32, (address, address)), [i])))
    (product,) = nodes(root, Op.MUL)
    assert [source.op for source in product.src] == [Op.LOAD, Op.LOAD]


def test_indices_are_in_normal_form():
    out, x = param(0, F32, (8, 4)), param(1, F32, (32,))
    i, j = range_(0, 8), range_(1, 4)
    flat = make(Op.ADD, dtypes.index, (make(Op.MUL, dtypes.index, (index(4), i)), j))
    root = normal(kernel("k", put(out, [flat // 4, flat % 4], at(x, flat), [i, j])))
    assert "store p0[r0, r1]" in dump(root)


def test_memory_that_a_merged_range_takes_apart_is_indexed_by_one_number():
    out, x = param(0, F32, (32,)), param(1, F32, (8, 4))
    i = range_(0, 32)
    root = normal(kernel("flat", put(out, [i], at(x, i // 4, i % 4), [i])))
    assert {len(node.src) for node in nodes(root, Op.INDEX)} == {3}
    assert not any(node.op in (Op.FLOORDIV, Op.FLOORMOD) for node in topological(root))
    assert "p1 = param 1: float32[32]" in dump(root)


def repeated(op: int, count: int, dtype: DType = F32) -> UOp:
    """The reduction of `count` equal terms, each the reduction of a row."""
    out, x = param(0, dtype, (4,)), param(1, dtype, (4, 3))
    i, j, k = range_(0, 4), range_(1, 3), range_(2, count)
    return stored(normal(kernel("k", put(out, [i], reduce_ranges(at(x, i, j), op, (j, k)), [i]))))


def test_a_sum_of_equal_terms_is_a_product_and_their_greatest_is_one_of_them():
    value = repeated(Op.ADD, 10)
    assert value.op == Op.MUL and value.src[1].arg == 10.0
    assert len(own_ranges(value.src[0])) == 1
    assert repeated(Op.MAX, 10).op == Op.REDUCE
    assert repeated(Op.ADD, 10, I32).op == Op.MUL


def test_a_count_that_a_small_float_has_no_number_for_stays_a_sum():
    half = dtypes.float16
    assert repeated(Op.ADD, EXACT_IN_HALF, half).op == Op.MUL
    assert repeated(Op.ADD, EXACT_IN_HALF + 1, half).op == Op.REDUCE


def test_each_store_closes_the_ranges_that_it_leaves_open():
    root = parse("""
kernel "two" r0 loop, r1 loop:
  p0 = param 0: float32[8]
  p1 = param 1: float32[8]
  p2 = param 2: float32[4]
  r0 < 8
  r1 < 4
  store p0[r0] = load p1[r0] for r0
  store p2[r1] = 1.0 for r1
""")
    open_stores = tuple(store(node.src[0], node.src[1]) for node in root.src)
    ranges = (range_(0, 8), range_(1, 4))
    whole = make(Op.KERNEL, dtypes.void, (*open_stores, *ranges), root.arg)
    assert normal(whole) is normal(root)


def test_a_reduction_inside_another_over_the_same_range_has_its_own():
    out, x = param(0, F32, (4,)), param(1, F32, (4, 8))
    i, j = range_(0, 4), range_(1, 8)
    inner = total(at(x, i, j), j)
    root = normal(kernel("centred", put(out, [i], total(at(x, i, j) * inner, j), [i])))
    reductions = nodes(root, Op.REDUCE)
    assert len({own_ranges(each) for each in reductions}) == 2
    assert len(kinds_of(root)) == 3
