"""How a kernel walks through memory: for each access, the stride along each range.

The heuristic and the search ask this to see which loops are contiguous. An access is an address
that is loaded or stored, or a stage that is read or filled.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from weft.codegen.analysis.loops import first_range, nodes_of
from weft.codegen.lower.flatten_memory import flat_index
from weft.ir.build import Size
from weft.ir.dtypes import INDEX, DType
from weft.ir.linear import linear
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp, on_sweep
from weft.ir.views import behind
from weft.ir.walk import substitute, topological
from weft.rules.logic import conditions
from weft.rules.simplify import simplify

# Elements between the addresses of two lanes that one load can bring.
NEAR: Final = 64
_USING: Final = frozenset((Op.INDEX, Op.READ, Op.STAGE, Op.CAST, Op.WHERE))


class Access(NamedTuple):
    """One access, or another use of an index.

    Ranges that are in the flat index, but not as a multiple, are in `tangled`; those that values
    look at are in `seen`. What a mask compares is listed beside the access.
    """

    node: UOp
    dtype: DType
    strides: dict[int, int]
    tangled: int
    seen: int

    def stride(self, number: int) -> int | None:
        return None if self.tangled >> number & 1 else self.strides.get(number, 0)


def accesses_of(kernel: UOp) -> list[Access]:
    """Every access of a kernel, and every other use of an index."""
    found: list[Access] = []
    for node in nodes_of(kernel):
        if node.op in _USING:
            found += _uses_of(node)
    return found


@lru_cache(maxsize=8192)
def _uses_of(node: UOp) -> tuple[Access, ...]:
    """What a node does with indices; an opt leaves most nodes of a kernel as they are."""
    if node.op in (Op.INDEX, Op.READ):
        memory = behind(node.src[0])
        sizes = memory.arg[1] if memory.op == Op.STAGE else shape_of(memory)
        access = _access(node, node.src[2:], sizes)
        return (access, *map(_condition, conditions(node.src[1])))
    if node.op == Op.STAGE:
        return (_access(node, node.src[1 : first_range(node)], node.arg[1]),)
    if node.op == Op.CAST and node.src[0].dtype.kind == INDEX:
        return (_linear_use(node, node.src[0]),)
    if node.op == Op.WHERE and node.src[0].ranges:
        return (Access(node, node.dtype, {}, 0, _index_ranges(node.src[0])),)
    return ()


on_sweep(_uses_of.cache_clear)


def _access(node: UOp, indices: Sequence[UOp], sizes: Sequence[Size]) -> Access:
    return _linear_use(node, flat_index(indices, sizes))


def _condition(node: UOp) -> Access:
    """A part of a mask: the sum that it compares with a constant, or all ranges that it sees."""
    inner = node.src[0] if node.op == Op.NOT else node
    if inner.op == Op.LESS and inner.src[1].op == Op.CONST and inner.src[0].dtype.kind == INDEX:
        return _linear_use(node, inner.src[0])
    return Access(node, node.dtype, {}, 0, node.ranges)


def _linear_use(node: UOp, flat: UOp) -> Access:
    strides: dict[int, int] = {}
    tangled = 0
    for term, factor in linear(flat)[1]:
        if term.op == Op.RANGE:
            strides[term.arg] = strides.get(term.arg, 0) + factor
        else:
            tangled |= term.ranges
    return Access(node, node.dtype, strides, tangled, 0)


def _index_ranges(condition: UOp) -> int:
    """The ranges of the indices that a condition compares."""
    found = 0
    for node in topological(condition, enter=lambda node: node.op not in (Op.LOAD, Op.READ)):
        if node.op == Op.RANGE:
            found |= node.ranges
    return found


def is_looked_up(node: UOp) -> bool:
    """Whether the address of an access comes out of memory."""
    return node.op == Op.INDEX and any(each.ops >> Op.LOAD & 1 for each in node.src[2:])


def nearby_span(access: Access, number: int, lanes: int) -> int:
    """How many elements the iterations of a range lie in, as many as lanes; 0 if not near."""
    memory = behind(access.node.src[0])
    stride = access.stride(number)
    if stride and access.node.op == Op.INDEX:  # what is a multiple needs no substitution
        last = stride * (lanes - 1)
        return last + 1 if 0 <= last < NEAR else 0
    node = next(
        (n for n in topological(access.node) if n.op == Op.RANGE and n.arg == number), None
    )
    if node is None or access.node.op != Op.INDEX:
        return 0
    flat = flat_index(access.node.src[2:], shape_of(memory))
    first = substitute(flat, {node: node.const_like(0)})
    span = 1
    for at in range(1, lanes):
        apart = simplify(substitute(flat, {node: node.const_like(at)}) - first)
        if apart.op != Op.CONST or not 0 <= apart.arg < NEAR:
            return 0
        span = max(span, int(apart.arg) + 1)
    return span


def walks_as_one(accesses: Sequence[Access], outer: int, inner: int, count: int) -> bool:
    """Whether two nested loops, the inner of `count` iterations, walk memory like a single one."""
    both = 1 << outer | 1 << inner
    return not any(
        (access.tangled | access.seen) & both
        or access.strides.get(outer, 0) != access.strides.get(inner, 0) * count
        for access in accesses
    )
