"""Conversions. A cast goes away where no value can change by it."""

from __future__ import annotations

from weft.ir.bounds import bounds, dtype_limits
from weft.ir.dtypes import BOOL, EXACT, FIXED, INDEX, INTEGER, DType, holds_exactly
from weft.ir.ops import Op
from weft.ir.uop import UOp, const, make
from weft.rewrite.pattern import any_, const_, node_
from weft.rewrite.rule import structural
from weft.rewrite.ruleset import rules

x = any_("x")


@structural(node_(Op.CAST, x))
def cast_to_same(node: UOp, x: UOp) -> UOp | None:
    """Drop a cast to the dtype the value has.

    before: make(Op.CAST, dtypes.index, (i,))
    after:  i
    """
    return x if node.dtype is x.dtype else None


@structural(node_(Op.CAST, node_(Op.CAST, x)))
def cast_of_cast(node: UOp, x: UOp) -> UOp | None:
    """Skip a conversion in between that keeps every value the inner one can have.

    before: i.cast(dtypes.int32).cast(dtypes.int64)
    after:  i.cast(dtypes.int64)

    before: u8.cast(dtypes.float32).cast(dtypes.uint8)
    after:  u8
    """
    between = node.src[0].dtype
    if between.kind == BOOL:
        return None
    if not (holds_exactly(between, x.dtype) or _fits(x, between)):
        return None
    return x.cast(node.dtype)


def _fits(x: UOp, dtype: DType) -> bool:
    """Whether the bounds of an integer keep it inside another integer type."""
    if not x.dtype.kind & EXACT or not dtype.kind & (FIXED | INDEX):
        return False
    low, high = bounds(x)
    least, most = dtype_limits(dtype)
    return least <= low and high <= most


@structural(node_(Op.CAST, x), over=INTEGER)
def cast_to_bool(node: UOp, x: UOp) -> UOp | None:
    """A number as a bool is a comparison.

    before: i.cast(dtypes.bool)
    after:  ~i.equal(const(0))
    """
    return ~x.equal(0) if node.dtype.kind == BOOL else None


@structural(node_(Op.LESS, node_(Op.CAST, x), const_("c")), over=INDEX)
def less_of_cast(node: UOp, x: UOp, c: int) -> UOp | None:
    """Compare a bool that was made an index by what it is.

    before: flag.cast(dtypes.index) < const(1)
    after:  ~flag
    """
    if x.dtype.kind != BOOL:
        return None
    return ~x if c == 1 else const(node.dtype, c > 1)


@structural(node_(Op.BITCAST, x))
def bitcast_to_same(node: UOp, x: UOp) -> UOp | None:
    """Drop a reinterpretation as the dtype the value has, and of another one.

    before: make(Op.BITCAST, dtypes.uint8, (u8,))
    after:  u8
    """
    if node.dtype is x.dtype:
        return x
    return make(Op.BITCAST, node.dtype, x.src) if x.op == Op.BITCAST else None


CAST_RULES = rules("cast", cast_of_cast, cast_to_same, cast_to_bool, less_of_cast, bitcast_to_same)
