"""The values at which arithmetic goes wrong, for every dtype, and when two of them are equal."""

import math

from weft.ir.arrays import small_floats
from weft.ir.dtypes import BOOL, FLOAT, INDEX, SCALARS, VOID, DType, Scalar, canonical

DTYPES = [dtype for dtype in SCALARS.values() if dtype.kind != VOID]
FLOATS = [dtype for dtype in DTYPES if dtype.kind == FLOAT]
INTEGERS = [dtype for dtype in DTYPES if dtype.kind not in (FLOAT, BOOL)]
EMULATED = [dtype for dtype in FLOATS if dtype.bits == 8 or dtype.name == "bfloat16"]

_PLAIN_FLOATS = (0.0, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 7.25, 10.3, 100.0, 1e-3, 1e9, math.inf)
_PLAIN_INTEGERS = (0, 1, 2, 3, 7, 8, 31, 32, 63, 64, 100, 127, 128, 255, 1000, 12345)


def edge_values(dtype: DType) -> list[Scalar]:
    """Ordinary values, the limits, and for floats NaN, infinities, both zeros and subnormals."""
    found: list[Scalar]
    if dtype.kind == FLOAT:
        assert dtype.format is not None
        info = small_floats.finfo(dtype.format)
        limits = (info.max, info.max / 2, info.smallest_normal, info.smallest_subnormal)
        near_one = (1 + info.eps, 1 - info.eps / 2, 3 * info.smallest_subnormal)
        positive = (*_PLAIN_FLOATS, *limits, *near_one)
        found = [*positive, *(-x for x in positive), math.nan]
    elif dtype.kind == BOOL:
        found = [False, True]
    elif dtype.kind == INDEX:
        found = [*_PLAIN_INTEGERS, *(-x for x in _PLAIN_INTEGERS), 2**40, -(2**40)]
    else:
        low, high = int(dtype.min), int(dtype.max)
        limits_and_near = (low, low + 1, high // 2, high // 2 + 1, high - 1, high)
        found = [*_PLAIN_INTEGERS, *(-x for x in _PLAIN_INTEGERS), *limits_and_near]
    unique = {repr(x): x for x in (canonical(dtype, x) for x in found)}
    return list(unique.values())


def same(left: Scalar, right: Scalar) -> bool:
    """Equal to the bit, except that any NaN equals any other."""
    if left != left or right != right:
        return left != left and right != right
    return left == right and math.copysign(1.0, left) == math.copysign(1.0, right)
