"""Symbolic sizes of a file, checked before arithmetic is done with them.

Sizes are polynomials, and a few lines of text can describe one with more terms than there is
memory, or a number with more digits. Such sizes are refused while they are still text-sized.
"""

from __future__ import annotations

from typing import Final

from weft.ir.bounds import bounds
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op, mask_of
from weft.ir.shapes import Shape
from weft.ir.spec.tensor import TENSOR_SPEC
from weft.ir.uop import UOp
from weft.ir.walk import topological

MOST_ELEMENTS: Final = 1 << 48  # of a value, and of an axis
_MOST_TERMS: Final = 256  # of a size
_MOST_PRODUCTS: Final = 4096  # of the sizes of a shape, multiplied out
_MOST_DEPTH: Final = 100
_LIMIT: Final = 1 << 62
_LONGEST_NAME: Final = 100

_NUMBERS: Final = (Op.CONST, Op.VARIABLE, Op.BIND)
_ARITHMETIC: Final = (
    *(Op.ADD, Op.MUL, Op.NEG, Op.FLOORDIV, Op.FLOORMOD, Op.TRUNCDIV, Op.TRUNCMOD),
    *(Op.MAX, Op.MIN, Op.WHERE, Op.LESS, Op.LESS_EQUAL, Op.EQUAL, Op.AND, Op.OR, Op.NOT),
)
_LEGAL: Final = mask_of(*_NUMBERS, *_ARITHMETIC)


class RefusedError(ValueError):
    """Why a file, or a graph that is to become one, is not an exported function."""


class SizeChecker:
    """Checks sizes of one file, each node once. `variables` are those met so far, by name."""

    def __init__(self) -> None:
        self.variables: dict[str, UOp] = {}
        self._weights: dict[UOp, tuple[int, int]] = {}  # terms, and depth
        self._whole: set[UOp] = set()

    def require_whole(self, size: UOp) -> None:
        """Raise unless a size that stands alone is one."""
        if size in self._whole:
            return
        for node in topological(size):
            if not 1 << node.op & _LEGAL:
                raise RefusedError("a size is computed from something else than sizes")
            fault = TENSOR_SPEC.fault_of(node)
            if fault is not None:
                raise RefusedError(f"a size is not well formed: {fault.invariant}")
            if node.dtype is dtypes.index:
                self.require(node)
        if size.dtype is not dtypes.index:
            raise RefusedError(f"a size is of dtype {size.dtype.name}")
        self._whole.add(size)

    def require(self, node: UOp) -> None:
        """Raise unless an index node is a size. Those below it were looked at before."""
        if node in self._weights:
            return
        if node.ops & ~_LEGAL:
            raise RefusedError("a size is computed from something else than sizes")
        if node.op == Op.VARIABLE:
            self._require_variable(node)
        parts = [self._weights[part] for part in node.src if part in self._weights]
        terms = 1
        if node.op == Op.ADD:
            terms = sum(count for count, _ in parts)
        elif node.op == Op.MUL:
            terms = parts[0][0] * parts[1][0] if len(parts) == 2 else 1
        elif node.op == Op.NEG and parts:
            terms = parts[0][0]
        depth = 1 + max((level for _, level in parts), default=0)
        if terms > _MOST_TERMS or depth > _MOST_DEPTH:
            raise RefusedError("a symbolic size is too long")
        self._weights[node] = terms, depth
        low, high = bounds(node)
        if low < -_LIMIT or high > _LIMIT:
            raise RefusedError("a symbolic size can be larger than any memory")

    def _require_variable(self, node: UOp) -> None:
        fault = TENSOR_SPEC.fault_of(node)
        if fault is not None:
            raise RefusedError(f"VARIABLE: {fault.invariant}")
        name: str = node.arg[0]
        if len(name) > _LONGEST_NAME or not name.isprintable():
            raise RefusedError("expected a printable name of a VARIABLE")
        if self.variables.setdefault(name, node) is not node:
            raise RefusedError(f"two variables are called {name!r}")

    def require_shape(self, shape: Shape) -> None:
        """Raise unless all sizes of a shape are counts that memory can have."""
        products = 1
        for size in shape:
            if isinstance(size, UOp):
                self.require_whole(size)
                products *= _terms(size)
            low, high = (size, size) if isinstance(size, int) else bounds(size)
            if low < 0 or high > MOST_ELEMENTS:
                raise RefusedError(f"an axis has {low if low < 0 else high} elements")
        if products > _MOST_PRODUCTS:
            raise RefusedError("a symbolic shape is too long")


def _terms(size: UOp) -> int:
    """How many products the polynomial of a size is the sum of."""
    count = 0
    stack = [size]
    while stack:
        node = stack.pop()
        if node.op == Op.ADD:
            stack.extend(node.src)
        else:
            count += 1
    return count


def require_count(size: object) -> int:
    """Return a size that a file states as a number."""
    if type(size) is not int or not 0 <= size <= MOST_ELEMENTS:
        raise RefusedError(f"expected a size, got {str(size)[:40]}")
    return size
