"""Small kernels of every kind that codegen meets, with the sizes of their memory."""

from collections.abc import Callable

from tests.unit.codegen.kernel_parts import (
    F32,
    I32,
    Case,
    at,
    exp,
    kernel,
    put,
    read,
    sqrt,
    stage,
    total,
)
from weft.ir.build import (
    index,
    param,
    range_,
    reduce_ranges,
    scan_range,
    variable,
    where,
)
from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import Op
from weft.ir.uop import const, make


def elementwise() -> Case:
    out, a, b = (param(slot, F32, (6, 8)) for slot in range(3))
    i, j = range_(0, 6), range_(1, 8)
    value = (at(a, i, j) * at(b, i, j) + 1.0).maximum(0.0)
    return Case(kernel("elementwise", put(out, [i, j], value, [i, j])), exact=True)


def odd_sizes() -> Case:
    out, a, b = param(0, F32, (7, 5)), param(1, F32, (7, 5)), param(2, F32, (5,))
    i, j = range_(0, 7), range_(1, 5)
    return Case(kernel("odd", put(out, [i, j], at(a, i, j) - at(b, j), [i, j])), exact=True)


def broadcast() -> Case:
    out, a, b = param(0, F32, (4, 3, 8)), param(1, F32, (4, 8)), param(2, F32, (3,))
    i, j, k = range_(0, 4), range_(1, 3), range_(2, 8)
    value = at(a, i, k) * at(b, j)
    return Case(kernel("broadcast", put(out, [i, j, k], value, [i, j, k])), exact=True)


def transpose() -> Case:
    out, a = param(0, F32, (8, 4)), param(1, F32, (4, 8))
    i, j = range_(0, 8), range_(1, 4)
    return Case(kernel("transpose", put(out, [i, j], at(a, j, i), [i, j])), exact=True)


def pad() -> Case:
    out, a = param(0, F32, (12,)), param(1, F32, (8,))
    i = range_(0, 12)
    mask = (index(1) < i) & (i < 10)
    value = at(a, i - 2, mask=mask) + 2.0
    return Case(kernel("pad", put(out, [i], value, [i])), exact=True)


def flip() -> Case:
    out, a = param(0, F32, (3, 8)), param(1, F32, (3, 8))
    i, j = range_(0, 3), range_(1, 8)
    return Case(kernel("flip", put(out, [i, j], at(a, i, index(7) - j), [i, j])), exact=True)


def scalar() -> Case:
    out, a = param(0, F32, ()), param(1, F32, (1,))
    return Case(kernel("scalar", put(out, [], at(a, index(0)) * 2.0, [])), exact=True)


def unit_ranges() -> Case:
    out, a = param(0, F32, (1, 4)), param(1, F32, (4, 1))
    i, j, k = range_(0, 1), range_(1, 4), range_(2, 1)
    value = total(at(a, j, k) + i.cast(F32), k)
    return Case(kernel("unit", put(out, [i, j], value, [i, j])), exact=True)


def sum_rows() -> Case:
    out, a = param(0, F32, (5,)), param(1, F32, (5, 16))
    i, k = range_(0, 5), range_(1, 16)
    return Case(kernel("sum_rows", put(out, [i], total(at(a, i, k), k) * 0.5, [i])))


def sum_columns() -> Case:
    out, a = param(0, I32, (8,)), param(1, I32, (6, 8))
    j, k = range_(0, 8), range_(1, 6)
    return Case(kernel("sum_columns", put(out, [j], total(at(a, k, j), k), [j])), exact=True)


def sum_all() -> Case:
    out, a = param(0, F32, ()), param(1, F32, (5, 7))
    i, k = range_(0, 5), range_(1, 7)
    return Case(kernel("sum_all", put(out, [], total(at(a, i, k), i, k), [])))


def matmul(m: int = 6, n: int = 8, k: int = 10) -> Case:
    out, a, b = param(0, F32, (m, n)), param(1, F32, (m, k)), param(2, F32, (k, n))
    i, j, r = range_(0, m), range_(1, n), range_(2, k)
    value = total(at(a, i, r) * at(b, r, j), r)
    return Case(kernel("matmul", put(out, [i, j], value, [i, j])))


def matmul_bias_relu() -> Case:
    out, a, b = param(0, F32, (7, 9)), param(1, F32, (7, 5)), param(2, F32, (5, 9))
    bias = param(3, F32, (9,))
    i, j, r = range_(0, 7), range_(1, 9), range_(2, 5)
    value = (total(at(a, i, r) * at(b, r, j), r) + at(bias, j)).maximum(0.0)
    return Case(kernel("matmul_bias_relu", put(out, [i, j], value, [i, j])))


def softmax(rows: int = 3, columns: int = 8) -> Case:
    out, x = (param(slot, F32, (rows, columns)) for slot in range(2))
    r, c, s, k, f = (range_(i, rows if i == 0 else columns) for i in range(5))
    top = reduce_ranges(at(x, r, k), Op.MAX, [k])
    kept = stage(exp(at(x, r, f) - top), (columns,), [f], [f])
    value = read(kept, c) / total(read(kept, s), s)
    return Case(kernel("softmax", put(out, [r, c], value, [r, c])))


def softmax_inline(rows: int = 3, columns: int = 6) -> Case:
    out, x = (param(slot, F32, (rows, columns)) for slot in range(2))
    r, c, s, k = (range_(i, rows if i == 0 else columns) for i in range(4))
    top = reduce_ranges(at(x, r, k), Op.MAX, [k])
    value = exp(at(x, r, c) - top) / total(exp(at(x, r, s) - top), s)
    return Case(kernel("softmax_inline", put(out, [r, c], value, [r, c])))


def shared_range_nests() -> Case:
    """Fill and store over the same range object: the loop is opened twice."""
    out, x = (param(slot, F32, (3, 6)) for slot in range(2))
    r, c, s = range_(0, 3), range_(1, 6), range_(2, 6)
    kept = stage(at(x, r, c) * 2.0, (6,), [c], [c])
    value = read(kept, index(5) - c) + total(read(kept, s), s)
    return Case(kernel("shared_range_nests", put(out, [r, c], value, [r, c])))


def sums_of_sums(shared: bool = False) -> Case:
    """Two sums in one loop: the second needs a maximum before, and each needs a sum inside."""
    out, x, y = param(0, F32, (3,)), param(1, F32, (3, 5, 4)), param(2, F32, (3, 6))
    i, r, s, k, t = (range_(number, size) for number, size in enumerate((3, 5, 5, 4, 6)))
    inner = total(exp(at(x, i, r, k)), k)
    top = reduce_ranges(at(y, i, t), Op.MAX, [t])
    if shared:
        first, second = total(sqrt(inner), r), total(exp(top - inner), r)
    else:
        n = range_(5, 4)
        first = total(at(x, i, s, index(2)), s)
        second = total(exp(top - total(exp(at(x, i, r, n)), n)), r)
    return Case(kernel("sums_of_sums", put(out, [i], first + second, [i])))


def sums_of_a_shared_sum() -> Case:
    return sums_of_sums(shared=True)


def sum_of_a_sum_and_its_row() -> Case:
    """A sum over k of values with a sum inside, which the store computes again over j."""
    out, x, y = param(0, F32, (3, 5)), param(1, F32, (3, 5, 4)), param(2, F32, (5, 5))
    i, j, k, n = (range_(number, size) for number, size in enumerate((3, 5, 5, 4)))
    rows = [total(at(x, i, r, n) * 0.25, n) for r in (j, k)]
    value = total(exp(rows[1]) * rows[1] * at(y, j, k), k) + exp(rows[0])
    return Case(kernel("sum_of_a_sum_and_its_row", put(out, [i, j], value, [i, j])))


def sum_behind_a_sum() -> Case:
    """The exponentials of two sums, of which the second needs the first."""
    out, x = param(0, F32, (3,)), param(1, F32, (3, 5))
    i, k, m = (range_(number, size) for number, size in enumerate((3, 5, 5)))
    first = total(exp(at(x, i, k)), k)
    value = total(exp(at(x, i, m)) / first, m)
    return Case(kernel("sum_behind_a_sum", put(out, [i], value, [i])))


def argmax() -> Case:
    out, x = param(0, I32, (4,)), param(1, F32, (4, 9))
    r, k, m = range_(0, 4), range_(1, 9), range_(2, 9)
    top = reduce_ranges(at(x, r, k), Op.MAX, [k])
    addresses = where(at(x, r, m).equal(top), m.cast(I32), const(I32, 9))
    best = reduce_ranges(addresses, Op.MIN, [m])
    return Case(kernel("argmax", put(out, [r], best, [r])), exact=True)


def mean_variance() -> Case:
    mean, variance = (param(slot, F32, (4,)) for slot in range(2))
    x = param(2, F32, (4, 8))
    r, k, q = range_(0, 4), range_(1, 8), range_(2, 8)
    average = total(at(x, r, k), k) * 0.125
    off = at(x, r, q) - average
    variation = total(off * off, q) * 0.125
    return Case(
        kernel("mean_variance", put(mean, [r], average, [r]), put(variance, [r], variation, [r]))
    )


def two_sums() -> Case:
    """Two reductions of one input that can share a loop."""
    out, x = param(0, F32, (4, 2)), param(1, F32, (4, 8))
    r, k, q = range_(0, 4), range_(1, 8), range_(2, 8)
    value = at(x, r, k)
    return Case(
        kernel(
            "two_sums",
            put(out, [r, index(0)], total(value, k), [r]),
            put(out, [r, index(1)], total(at(x, r, q) * at(x, r, q), q), [r]),
        )
    )


def layernorm() -> Case:
    out, x, g = param(0, F32, (3, 8)), param(1, F32, (3, 8)), param(2, F32, (8,))
    r, c, k, q = (range_(i, 3 if i == 0 else 8) for i in range(4))
    average = total(at(x, r, k), k) * 0.125
    off = at(x, r, q) - average
    scale = sqrt(total(off * off, q) * 0.125 + 1e-5)
    value = (at(x, r, c) - average) / scale * at(g, c)
    return Case(kernel("layernorm", put(out, [r, c], value, [r, c])))


def adam() -> Case:
    m, v, w, g = (param(slot, F32, (10,)) for slot in range(4))
    i = range_(0, 10)
    moment = at(m, i) * 0.5 + at(g, i)
    square = at(v, i) * 0.25 + at(g, i) * at(g, i)
    weight = at(w, i) - moment / (square + 1.0)
    stores = [put(m, [i], moment, [i]), put(v, [i], square, [i]), put(w, [i], weight, [i])]
    return Case(kernel("adam", *stores), exact=True)


def other_loops_see_old_contents() -> Case:
    x, out = param(0, I32, (6,)), param(1, I32, (1,))
    i, k = range_(0, 6), range_(1, 6)
    return Case(
        kernel(
            "old_contents",
            put(x, [i], at(x, i) * 2, [i]),
            put(out, [index(0)], total(at(x, k), k), []),
        ),
        exact=True,
    )


def conv() -> Case:
    out, x = param(0, F32, (2, 4, 6, 6)), param(1, F32, (2, 3, 6, 6))
    w = param(2, F32, (4, 3, 3, 3))
    n, o, y, z = range_(0, 2), range_(1, 4), range_(2, 6), range_(3, 6)
    c, p, q = range_(4, 3), range_(5, 3), range_(6, 3)
    mask = (index(0) < y + p) & (y + p < 7) & (index(0) < z + q) & (z + q < 7)
    value = at(x, n, c, y + p - 1, z + q - 1, mask=mask) * at(w, o, c, p, q)
    return Case(kernel("conv", put(out, [n, o, y, z], total(value, c, p, q), [n, o, y, z])))


def bools() -> Case:
    out, any_row = param(0, dtypes.bool, (4, 8)), param(1, dtypes.bool, (4,))
    a, b = param(2, dtypes.bool, (4, 8)), param(3, I32, (4, 8))
    i, j, k = range_(0, 4), range_(1, 8), range_(2, 8)
    mixed = at(a, i, j) & (at(b, i, j) < 2)
    found = reduce_ranges(at(a, i, k), Op.OR, [k])
    return Case(
        kernel("bools", put(out, [i, j], mixed, [i, j]), put(any_row, [i], found, [i])), exact=True
    )


def integers() -> Case:
    out, a, b = (param(slot, I32, (3, 8)) for slot in range(3))
    i, j = range_(0, 3), range_(1, 8)
    x, y = at(a, i, j), at(b, i, j)
    value = (x // y) * 3 + x % y + make(Op.TRUNCDIV, I32, (x, y)) + (x ^ y)
    return Case(kernel("integers", put(out, [i, j], value, [i, j])), exact=True)


def arange_and_gather() -> Case:
    out, table, ids = param(0, F32, (5, 8)), param(1, F32, (6, 8)), param(2, I32, (5,))
    i, j = range_(0, 5), range_(1, 8)
    row = at(ids, i).cast(dtypes.index)
    mask = ~(row < 0) & (row < 6)
    value = at(table, row, j, mask=mask) + (i * 8 + j).cast(F32)
    return Case(kernel("gather", put(out, [i, j], value, [i, j])), exact=True)


def reshape_with_division() -> Case:
    out, a = param(0, F32, (24,)), param(1, F32, (3, 8))
    i = range_(0, 24)
    value = at(a, (i // 4) % 3, (i % 4) * 2 + i // 12)
    return Case(kernel("reshape", put(out, [i], value, [i])), exact=True)


def symbolic() -> Case:
    n = variable("n", 1, 16)
    out, a, s = param(0, F32, (n, 4)), param(1, F32, (n, 4)), param(2, F32, (4,))
    i, j, k, q = range_(0, n), range_(1, 4), range_(2, n), range_(3, 4)
    sums = total(at(a, k, q), k)
    stores = [
        put(out, [i, j], at(a, i, j) * n.cast(F32), [i, j]),
        put(s, [q], sums, [q]),
    ]
    return Case(kernel("symbolic", *stores), variables={"n": 5})


def transposed_stage() -> Case:
    out, x = param(0, I32, (8, 4)), param(1, I32, (4, 8))
    i, j, a, b = range_(0, 4), range_(1, 8), range_(2, 8), range_(3, 4)
    tile = stage(at(x, i, j), (8, 4), [j, i], [i, j])
    return Case(kernel("transposed_stage", put(out, [a, b], read(tile, a, b), [a, b])), exact=True)


def half_precision(dtype: DType = dtypes.float16) -> Case:
    out, a, b = param(0, dtype, (4, 8)), param(1, dtype, (4, 8)), param(2, dtype, (4,))
    i, j, k = range_(0, 4), range_(1, 8), range_(2, 8)
    value = at(a, i, j) * at(b, i) + total(at(a, i, k), k)
    return Case(kernel("half", put(out, [i, j], value, [i, j])))


def accumulate_over_an_outer_loop() -> Case:
    out, x = param(0, I32, (4,)), param(1, I32, (4, 6))
    outer, i, k = range_(0, 3), range_(1, 4), range_(2, 2)
    part = total(at(x, i, outer * 2 + k), k)
    before = at(out, i, mask=index(0) < outer)
    made = kernel("accumulate", put(out, [i], before + part, [outer, i]))
    loops = ((0, "ordered"), (1, "loop"), (2, "loop"))
    return Case(make(Op.KERNEL, dtypes.void, made.src, ("accumulate", loops)), exact=True)


def read_after_a_store() -> Case:
    """One reduction sees what the kernel writes, another what was there before."""
    x, out = param(0, I32, (6,)), param(1, I32, (1,))
    i, k, q = range_(0, 6), range_(1, 6), range_(2, 6)
    double = put(x, [i], at(x, i) * 2, [i])
    new = total(at(make(Op.AFTER, I32, (x, double)), k), k)
    value = new * 100 + total(at(x, q), q)
    return Case(kernel("after", double, put(out, [index(0)], value, [])), exact=True)


def read_by_reductions_of_reductions_after_a_store() -> Case:
    """The same with reductions of reductions, whose inner ones read."""
    x, out = param(0, I32, (6, 5)), param(1, I32, (1,))
    i, j, k, m, p, q = (range_(number, (6, 5)[number % 2]) for number in range(6))
    double = put(x, [i, j], at(x, i, j) * 2, [i, j])
    new = reduce_ranges(total(at(make(Op.AFTER, I32, (x, double)), k, m), m), Op.MAX, [k])
    old = reduce_ranges(total(at(x, p, q), q), Op.MAX, [p])
    return Case(kernel("after", double, put(out, [index(0)], new * 100 + old, [])), exact=True)


def empty_loop() -> Case:
    out, a = param(0, F32, (3,)), param(1, F32, (3, 0))
    i, k = range_(0, 3), range_(1, 0)
    return Case(kernel("empty", put(out, [i], total(at(a, i, k), k), [i])), exact=True)


def maximum_with_nan() -> Case:
    out, a = param(0, F32, (4,)), param(1, F32, (4, 6))
    i, k = range_(0, 4), range_(1, 6)
    value = where(k.equal(i), const(F32, float("nan")), at(a, i, k))
    chosen = where(i.cast(I32) < 2, at(a, i, k), value)
    return Case(kernel("nan", put(out, [i], reduce_ranges(chosen, Op.MAX, [k]), [i])), exact=True)


def closed_by_the_kernel() -> Case:
    out, a = param(0, F32, (4, 8)), param(1, F32, (4, 8))
    i, j = range_(0, 4), range_(1, 8)
    stored = put(out, [i, j], at(a, i, j) + 1.0, [j])
    loops = ((0, "loop"), (1, "loop"))
    return Case(make(Op.KERNEL, dtypes.void, (stored, i), ("outer", loops)), exact=True)


def scan_rows() -> Case:
    out, a = param(0, F32, (6, 9)), param(1, F32, (6, 9))
    i, j = range_(0, 6), range_(1, 9)
    value = scan_range(at(a, i, j) * 2.0, Op.ADD, j) + 1.0
    return Case(kernel("scan_rows", put(out, [i, j], value, [i, j])))


def scan_columns() -> Case:
    """The loop of the scan is inside the one that memory is contiguous along."""
    out, a = param(0, I32, (9, 8)), param(1, I32, (9, 8))
    i, j = range_(0, 8), range_(1, 9)
    value = scan_range(at(a, j, i), Op.MAX, j)
    return Case(kernel("scan_columns", put(out, [j, i], value, [i, j])), exact=True)


def scan_of_a_scan() -> Case:
    """Two results: the greatest so far, and the last index where it was set."""
    out, where_, a = param(0, I32, (3, 7)), param(1, I32, (3, 7)), param(2, I32, (3, 7))
    i, j = range_(0, 3), range_(1, 7)
    best = scan_range(at(a, i, j), Op.MAX, j)
    sets = where(at(a, i, j).equal(best), j.cast(I32), const(I32, 0))
    last = scan_range(sets, Op.MAX, j)
    stores = put(out, [i, j], best, [i, j]), put(where_, [i, j], last, [i, j])
    return Case(kernel("scan_of_a_scan", *stores), exact=True)


def sum_of_a_scan() -> Case:
    out, a = param(0, I32, (5,)), param(1, I32, (5, 6))
    i, k = range_(0, 5), range_(1, 6)
    value = total(scan_range(at(a, i, k), Op.ADD, k), k)
    return Case(kernel("sum_of_a_scan", put(out, [i], value, [i])), exact=True)


def scan_of_sums() -> Case:
    """The reduction of a row is computed in its iteration, and used in a loop inside."""
    out, a = param(0, I32, (5, 3)), param(1, I32, (5, 6))
    i, j, k = range_(0, 5), range_(1, 3), range_(2, 6)
    sums = scan_range(total(at(a, i, k), k), Op.ADD, i)
    return Case(kernel("scan_of_sums", put(out, [i, j], sums * j.cast(I32), [i, j])), exact=True)


def scan_in_place() -> Case:
    a = param(0, I32, (4, 6))
    i, j = range_(0, 4), range_(1, 6)
    stored = put(a, [i, j], scan_range(at(a, i, j), Op.ADD, j), [i, j])
    return Case(kernel("scan_in_place", stored), exact=True)


def scan_of_halves() -> Case:
    half = dtypes.float16
    out, a = param(0, half, (2, 8)), param(1, half, (2, 8))
    i, j = range_(0, 2), range_(1, 8)
    value = scan_range(at(a, i, j), Op.ADD, j)
    return Case(kernel("scan_of_halves", put(out, [i, j], value, [i, j])))


CASES: dict[str, Callable[[], Case]] = {
    made.__name__: made
    for made in (
        elementwise,
        odd_sizes,
        broadcast,
        transpose,
        pad,
        flip,
        scalar,
        unit_ranges,
        sum_rows,
        sum_columns,
        sum_all,
        matmul,
        matmul_bias_relu,
        softmax,
        softmax_inline,
        shared_range_nests,
        sums_of_sums,
        sums_of_a_shared_sum,
        sum_of_a_sum_and_its_row,
        sum_behind_a_sum,
        argmax,
        mean_variance,
        two_sums,
        layernorm,
        adam,
        other_loops_see_old_contents,
        conv,
        bools,
        integers,
        arange_and_gather,
        reshape_with_division,
        symbolic,
        transposed_stage,
        half_precision,
        accumulate_over_an_outer_loop,
        read_after_a_store,
        read_by_reductions_of_reductions_after_a_store,
        empty_loop,
        maximum_with_nan,
        closed_by_the_kernel,
        scan_rows,
        scan_columns,
        scan_of_a_scan,
        sum_of_a_scan,
        scan_of_sums,
        scan_in_place,
        scan_of_halves,
    )
}
