"""What the renderer may assume about an instruction, proven from intervals.

Integers wrap in Weft, and an index computed in 32 bits has to be widened before LLVM can use it as
an address. Where intervals prove that nothing wraps, `nsw` says so. On a CPU, such arithmetic is
written in 64 bits from the start (`plan_widths`), so that an address needs no conversion and its
constant part folds into the instruction.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from itertools import chain
from typing import Final, NamedTuple

from weft.ir.bounds import bounds, dtype_limits
from weft.ir.dtypes import FLOAT, INTEGER
from weft.ir.ops import Op
from weft.ir.uop import Interval, UOp
from weft.ir.walk import topological

_COUNTERS: Final = frozenset((Op.RANGE, Op.SPECIAL))
_DIVISIONS: Final = frozenset((Op.FLOORDIV, Op.FLOORMOD, Op.TRUNCDIV, Op.TRUNCMOD))
# Ops whose results are multiples of what divides their sources.
_DIVIDED: Final = frozenset((Op.ADD, Op.MUL, Op.NEG, Op.CAST, Op.MAX, Op.MIN, Op.SHL))
_CHOICES: Final = frozenset((Op.MAX, Op.MIN, Op.WHERE))

ANY_INTERVAL: Final = (-(1 << 64), 1 << 64)


class Facts(NamedTuple):
    """What is proven of an instruction: its sources' intervals and what its result may be."""

    left: Interval = ANY_INTERVAL
    right: Interval = ANY_INTERVAL
    never_wraps: bool = False
    contracts: bool = False  # a product and the sum that takes it may be rounded once


class Widths(NamedTuple):
    """How integers are written; every other node has its own type only."""

    as_64: frozenset[UOp]  # computed in 64 bits
    read_as_64: frozenset[UOp]
    read_as_own: frozenset[UOp]


def facts_of(node: UOp, contracted: frozenset[UOp]) -> Facts:
    if node.dtype.kind == FLOAT or not node.src or not node.src[-1].dtype.kind & INTEGER:
        return Facts(contracts=node in contracted)
    right = bounds(node.src[-1])
    left = bounds(node.src[-2]) if len(node.src) > 1 else right
    if node.op == Op.WHERE:
        return Facts(left, right)
    return Facts(left, right, _never_wraps(node, left, right))


def _never_wraps(node: UOp, left: Interval, right: Interval) -> bool:
    """Whether the exact result of ADD, MUL or NEG fits the dtype for all values of the sources."""
    (a, b), (c, d) = left, right
    if node.op == Op.ADD:
        low, high = a + c, b + d
    elif node.op == Op.MUL:
        corners = (a * c, a * d, b * c, b * d)
        low, high = min(corners), max(corners)
    elif node.op == Op.NEG:
        low, high = -d, -c
    else:
        return False
    least, most = dtype_limits(node.dtype)
    return least <= low and high <= most


def is_narrow(node: UOp) -> bool:
    """Whether a node is an integer that an address cannot take as it is."""
    dtype = node.dtype
    return bool(dtype.kind & INTEGER) and dtype.bits < 64 and dtype.lanes == 1


def divisor_of(index: UOp) -> int:
    """A number that an integer is always a multiple of; 0 of 0, which is one of all numbers.

    An index never wraps, because it lies inside its memory.
    """
    found: dict[UOp, int] = {}
    for node in topological(index, enter=lambda node: node.op in _DIVIDED):
        parts = [found[source] for source in node.src] if node.op in _DIVIDED else []
        if node.op == Op.CONST:
            found[node] = abs(int(node.arg))
        elif node.op == Op.MUL:
            found[node] = math.prod(parts)
        elif node.op == Op.SHL and node.src[1].op == Op.CONST:
            found[node] = parts[0] << int(node.src[1].arg)
        else:
            found[node] = math.gcd(*parts) if parts and node.op != Op.SHL else 1
    return found[index]


def plan_widths(instructions: Iterable[UOp]) -> Widths:
    """Which integers to compute in 64 bits: those that only addresses and their parts need."""
    as_64: set[UOp] = set()
    read_as_64: set[UOp] = set()
    read_as_own: set[UOp] = set()
    for node in reversed(list(instructions)):
        is_widened = node in read_as_64 and _keeps_value(node)
        if is_widened:
            as_64.add(node)
        for position, source in enumerate(node.src):
            is_index = node.op == Op.INDEX and position == 2
            is_part = is_widened and not (node.op == Op.WHERE and position == 0)
            if (is_index or is_part) and is_narrow(source):
                read_as_64.add(source)
            elif node.op != Op.END:
                read_as_own.add(source)
    for node in read_as_64:
        if node.op in _COUNTERS:  # a SPECIAL need not be listed
            as_64.add(node)
    return Widths(frozenset(as_64), frozenset(read_as_64), frozenset(read_as_own))


def _keeps_value(node: UOp) -> bool:
    """Whether an op on 64-bit sources gives the same integer as on narrow ones."""
    if node.op in _COUNTERS:
        return True
    if node.op == Op.CAST:
        source = node.src[0]
        if not source.dtype.kind & INTEGER:
            return False
        (low, high), (least, most) = bounds(source), dtype_limits(node.dtype)
        return least <= low and high <= most
    if node.op in _DIVISIONS:
        return node.src[1].op == Op.CONST and node.src[1].arg > 0
    return node.op in _CHOICES or facts_of(node, frozenset()).never_wraps


def plan_contractions(instructions: Iterable[UOp]) -> frozenset[UOp]:
    """The sums, and the products in them, that may become one fused multiply-add.

    Only a sum of one product and something else, and only a product that nothing else uses: then
    `x * x - y * y` is exactly 0 where x equals y, and what is fused is only ever more exact.
    """
    listed = list(instructions)
    uses = Counter(chain.from_iterable([node.src for node in listed]))
    found: set[UOp] = set()
    for node in listed:
        if node.op == Op.ADD and node.dtype.kind == FLOAT:
            products = [part for part in map(_product, node.src) if part]
            if len(products) == 1 and all(uses[part] == 1 for part in products[0]):
                found.update((node, *products[0]))
    return frozenset(found)


def _product(node: UOp) -> tuple[UOp, ...]:
    """The parts of a product or of a negated one; none if it is neither."""
    if node.op == Op.NEG and node.src[0].op == Op.MUL:
        return node, node.src[0]
    return (node,) if node.op == Op.MUL else ()
