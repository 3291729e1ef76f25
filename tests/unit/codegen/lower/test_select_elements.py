"""Sums that pick one element load it, where the row is long and the comparison exact."""

import pytest

from tests.unit.codegen.kernel_parts import Case, at, kernel, put, total
from tests.unit.codegen.oracle import check
from tests.unit.machines import machine
from weft.codegen.lower.select_elements import LEAST_ROW, select_elements
from weft.ir.build import param, range_, where
from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, const

F32, I32 = dtypes.float32, dtypes.int32
N = LEAST_ROW + 6


def picked(kind: str, size: int = N, dtype: DType = I32) -> Case:
    """The element of each row that another argument, with values from -5 to 5, names."""
    out, x, t = param(0, F32, (6,)), param(1, F32, (6, size)), param(2, dtype, (6,))
    i, k, q = range_(0, 6), range_(1, size), range_(2, 3)
    value, zero = at(x, i, k), const(F32, 0)
    chosen = k.cast(dtype).equal(at(t, i))
    if kind == "masked too":
        chosen = chosen & (value < 1.0)
    body = where(chosen, value * 2.0, zero)
    body = -body if kind == "negated" else body
    if kind == "of the other side":
        body = where(at(t, i).equal(k.cast(dtype)), value, zero)
    if kind == "less than":
        body = where(k.cast(dtype) < at(t, i), value, zero)
    if kind == "inside of another sum":
        return Case(kernel("k", put(out, [i], total(body * q.cast(F32), k, q), [i])))
    return Case(kernel("k", put(out, [i], total(body, k), [i])))


def reduced(made: UOp) -> bool:
    return bool(select_elements(made).ops >> Op.REDUCE & 1)


@pytest.mark.parametrize("kind", ["plain", "negated", "masked too", "of the other side"])
def test_one_element_is_loaded(kind: str, seed: int) -> None:
    case = picked(kind)
    assert not reduced(case.kernel)
    check(case, machine(), (), seed)
    check(case, machine(vector_bits=128), None, seed)


@pytest.mark.parametrize(
    "case",
    [picked("plain", LEAST_ROW - 1), picked("less than"), picked("plain", 300, dtypes.int8)],
    ids=["a short row", "not one element", "a number that wraps"],
)
def test_other_sums_stay(case: Case) -> None:
    assert reduced(case.kernel)
    check(case, machine(), ())


def test_other_ranges_are_summed_over() -> None:
    case = picked("inside of another sum")
    check(case, machine(), ())
