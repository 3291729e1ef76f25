"""Reductions over like ranges share a loop, and sums of sums are one sum."""

import pytest

from tests.unit.codegen.kernel_parts import F32, Case, at, kernel, put, total
from tests.unit.codegen.oracle import arguments, is_close
from tests.unit.machines import machine
from weft.codegen.analysis.loops import own_ranges
from weft.codegen.context import CodegenContext
from weft.codegen.lower.merge_reductions import merge_reductions
from weft.codegen.lower.normalize_kernel import normalize_kernel
from weft.ir.build import param, range_, reduce_ranges, where
from weft.ir.ops import Op
from weft.ir.uop import UOp, const
from weft.ir.walk import topological
from weft.reference.kernel import run_kernel

CONTEXT = CodegenContext(machine())
i, j, k, n = range_(0, 4), range_(1, 8), range_(2, 8), range_(3, 5)
out, x, y = param(0, F32, (4,)), param(1, F32, (4, 8)), param(2, F32, (4, 8, 5))
alone = param(1, F32, (4, 8, 5))


def stored(value: UOp) -> UOp:
    return kernel("k", put(out, [i], value, [i]))


def greatest(value: UOp, *ranges: UOp) -> UOp:
    return reduce_ranges(value, Op.MAX, ranges)


KERNELS = {
    "two of one row": stored(total(at(x, i, j), j) * greatest(at(x, i, k), k)),
    "one needs the other": stored(total(at(x, i, k) * greatest(at(x, i, j), j), k)),
    "a sum of sums": stored(total(total(at(alone, i, j, n), n), j)),
    "a sum of masked sums": stored(
        total(where(j < 5, total(at(alone, i, j, n), n), const(F32, 0.0)), j)
    ),
    "products": stored(total(at(x, i, j) * at(x, 3 - i, j), j) + total(at(x, i, k), k)),
    "lengths that differ": stored(total(at(x, i, j), j) + total(at(y, i, n, n), n)),
}


def merged(name: str) -> UOp:
    return merge_reductions(normalize_kernel(KERNELS[name], CONTEXT), CONTEXT)


def reductions(root: UOp) -> list[UOp]:
    return [node for node in topological(root) if node.op == Op.REDUCE]


def loops(root: UOp) -> int:
    return len({own_ranges(node) for node in reductions(root)})


@pytest.mark.parametrize("name", KERNELS)
def test_the_kernel_means_the_same(name: str, seed: int):
    case = Case(KERNELS[name])
    expected, result = (arguments(case.kernel, {}, seed) for _ in range(2))
    run_kernel(case.kernel, expected)
    run_kernel(merged(name), result)
    pairs = zip(expected[0].values, result[0].values, strict=True)
    assert all(is_close(want, got, F32, False) for want, got in pairs)


def test_reductions_of_one_row_share_their_loop():
    assert loops(merged("two of one row")) == 1


def test_a_reduction_that_needs_another_one_comes_after_it():
    root = merged("one needs the other")
    assert loops(root) == 2


def test_a_sum_of_sums_is_one_sum():
    (single,) = reductions(merged("a sum of sums"))
    assert len(own_ranges(single)) == 2


def test_a_mask_between_two_sums_goes_to_the_terms():
    (single,) = reductions(merged("a sum of masked sums"))
    assert len(own_ranges(single)) == 2


def test_loops_of_other_lengths_stay_apart():
    assert loops(merged("lengths that differ")) == 2


def test_a_contraction_keeps_its_loop():
    """It wants all registers for itself."""
    a, b, c = param(1, F32, (4, 8)), param(2, F32, (8, 6)), param(0, F32, (4, 6))
    m = range_(5, 6)
    value = total(at(a, i, j) * at(b, j, m), j) + total(at(a, i, k) + at(b, k, m), k)
    root = kernel("k", put(c, [i, m], value, [i, m]))
    assert loops(merge_reductions(normalize_kernel(root, CONTEXT), CONTEXT)) == 2
