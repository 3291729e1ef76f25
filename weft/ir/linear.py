"""The linear form of integer arithmetic, and the order that makes it unique.

Normal form writes a sum as a chain `((t0*c0 + t1*c1) + …) + c`, its terms in a fixed order, none
twice, constants last. `linear` takes such a chain apart into (c, ((t0, c0), (t1, c1), …)), and
`from_linear` puts one together. The order depends on structure alone, so every process builds the
same nodes: outer ranges come first, and among equals a hash of the structure decides.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Final

from weft.ir.dtypes import DType, canonical
from weft.ir.ops import Op
from weft.ir.uop import Arg, Linear, UOp, const, make
from weft.ir.walk import bodies, topological

# Longer sums are left as they are: taking them apart again and again would cost their square.
LONGEST: Final = 48
# Sums of values, which are not addresses, are short: a part of one is often used elsewhere too, as
# in a hash, where each round adds two results of the last; taken apart, all of it is added again.
LONGEST_VALUE: Final = 4
_WITH_BODIES: Final = 1 << Op.CALL | 1 << Op.CUSTOM_GRADIENT

_DTYPE_NUMBERS: dict[DType, int] = {}


def linear(node: UOp) -> Linear:
    """The constant and the (term, coefficient) pairs of a node in normal form."""
    found = node.linear
    if found is None:
        if node.op != Op.ADD and node.op != Op.MUL and node.op != Op.CONST:
            return 0, ((node, 1),)  # not kept: a node that remembers itself is never swept
        found = _linear(node)
        if node.op != Op.MUL or found[1][0][0] is not node:
            node.linear = found
    return found


def _linear(node: UOp) -> Linear:
    op = node.op
    if op == Op.CONST:
        return int(node.arg), ()
    if op == Op.MUL:
        term, factor = node.src
        return (0, ((term, int(factor.arg)),)) if factor.op == Op.CONST else (0, ((node, 1),))
    rights: list[UOp] = []
    while node.op == Op.ADD and node.linear is None:
        rights.append(node.src[1])
        node = node.src[0]
    constant, terms = linear(node)
    for right in reversed(rights):
        more, extra = linear(right)
        constant += more
        terms += extra
    return constant, terms


def from_linear(dtype: DType, constant: int, terms: Iterable[tuple[UOp, int]]) -> UOp:
    """The sum of these terms, which are in order and distinct."""
    total: UOp | None = None
    for term, factor in terms:
        part = term if factor == 1 else make(Op.MUL, dtype, (term, const(dtype, factor)))
        total = part if total is None else make(Op.ADD, dtype, (total, part))
    if total is None:
        return const(dtype, constant)
    return make(Op.ADD, dtype, (total, const(dtype, constant))) if constant else total


def in_order(dtype: DType, factors: dict[UOp, int]) -> list[tuple[UOp, int]]:
    """The terms with their factors, wrapped to the dtype, zero ones left out, in order."""
    wrapped = [(term, int(canonical(dtype, factor))) for term, factor in factors.items()]
    kept = [pair for pair in wrapped if pair[1]]
    return sorted(kept, key=lambda pair: order(pair[0])) if len(kept) > 1 else kept


def order(node: UOp) -> tuple[int, int, int]:
    """The sort key of a term: its outermost range, its op, a hash of its structure."""
    found = node.order
    if found is None:
        if node.ops & _WITH_BODIES:
            for body in bodies(node, enter=lambda part: part.order is None):
                _fill_orders(body)
        _fill_orders(node)
        found = node.order
        assert found is not None
    return found


def _fill_orders(node: UOp) -> None:
    for part in topological(node, enter=lambda part: part.order is None):
        if part.order is None:
            part.order = _order(part)


def _order(node: UOp) -> tuple[int, int, int]:
    if node.op == Op.BIND:  # the same order of terms for all values of the variable
        return order(node.src[0])
    lowest = node.ranges & -node.ranges
    number = _DTYPE_NUMBERS.get(node.dtype)
    if number is None:
        number = _DTYPE_NUMBERS[node.dtype] = zlib.crc32(node.dtype.name.encode())
    parts = [node.op, number, _arg_hash(node.arg)]
    for source in node.src:
        parts.append((source.order or order(source))[2])
    return lowest.bit_length(), node.op, hash(tuple(parts))


def _arg_hash(arg: Arg) -> int:
    """The same number in every process; Python salts the hashes of strings."""
    if type(arg) is int:
        return 2 * arg if arg >= 0 else 1 - 2 * arg  # since hash(-1) == hash(-2)
    if isinstance(arg, UOp):
        return order(arg)[2]
    return zlib.crc32(repr(arg).encode())
