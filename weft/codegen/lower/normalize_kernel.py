"""Brings a kernel into the form that the other passes rely on.

In: any kernel of KERNEL_SPEC. Out: a kernel of KERNEL_SPEC whose table lists every range and whose
ranges all have more than one iteration, or a symbolic number of them; index arithmetic is in
normal form, memory is read by LOAD only, each store closes all its ranges itself, and no node
closes a range inside another that closes it. No sum is over a range that its terms do not depend
on: they are multiplied instead, which rounds once. Memory is indexed by one number where that is
plainer.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import Final

from weft.codegen.analysis.loops import (
    LOOP,
    extent_of,
    first_range,
    is_index_arithmetic,
    kinds_of,
    own_ranges,
    ranges_of,
    rebuilt,
    with_loops,
)
from weft.codegen.context import CodegenContext
from weft.codegen.lower.flatten_memory import flat_index
from weft.ir.build import index_of, param
from weft.ir.dtypes import BOOL
from weft.ir.ops import Op
from weft.ir.shapes import largest_size, shape_of
from weft.ir.uop import UOp, make
from weft.ir.walk import map_graph, substitute, topological
from weft.rules.simplify import simplify

# Every whole number up to this one is a number of all small floats that sums are taken in.
EXACT_IN_HALF: Final = 256
_OP: Final = operator.attrgetter("op")


def normalize_kernel(kernel: UOp, context: CodegenContext) -> UOp:
    """List all ranges, drop those of one iteration, simplify indices and masks."""
    units = {r: r.const_like(0) for r in ranges_of(kernel).values() if extent_of(r) == 1}
    none: dict[UOp, tuple[UOp, ...]] = dict.fromkeys(units, ())

    def normal(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        new = _with_equal_terms(_loaded(rebuilt(node, made, none)))
        if new.op == Op.KERNEL:
            new = _closed_by_stores(new)
        return simplify(new) if is_index_arithmetic(new) else new

    kinds = kinds_of(kernel)
    result = map_graph(kernel, normal, known=units)
    present = ranges_of(result)
    listed = [(number, kind) for number, kind in kinds.items() if number in present]
    missing = [(number, LOOP) for number in sorted(present) if number not in kinds]
    return _without_nested_ranges(_with_plain_indices(with_loops(result, [*listed, *missing])))


def _with_equal_terms(node: UOp) -> UOp:
    """A sum of equal terms as a product, and the greatest of equal terms as one of them.

    before: reduce ADD over r0, r1: load p0[r0]    # r1 < 10
    after:  (reduce ADD over r0: load p0[r0]) * 10
    """
    is_plain = node.op == Op.REDUCE and node.dtype.kind != BOOL and first_range(node) == 1
    if not is_plain or node.arg[0] not in (Op.ADD, Op.MAX):
        return node
    body, *ranges = node.src
    extents = {r: extent_of(r) or 0 for r in ranges if not body.ranges >> r.arg & 1}
    idle = [r for r, extent in extents.items() if extent]  # a symbolic one stays a loop
    count = math.prod(extents[r] for r in idle)
    if not idle:
        return node
    if node.dtype.is_float and node.dtype.bits < 32 and count > EXACT_IN_HALF:
        return node
    rest = [r for r in ranges if r not in idle]
    value = make(Op.REDUCE, node.dtype, (body, *rest), node.arg) if rest else body
    return value if node.arg[0] == Op.MAX else value * count


def _with_plain_indices(kernel: UOp) -> UOp:
    """Index memory by one number where several take a range apart that this one does not.

    A range that was merged from axes of this memory, as by a reshape, is divided again to index
    them. Opts see how it walks through memory, and split it freely, if it is left whole.
    """
    addresses: dict[UOp, list[UOp]] = {}
    for node in topological(kernel):
        if node.op == Op.INDEX and node.src[0].op == Op.PARAM:
            addresses.setdefault(node.src[0], []).append(node)
    flat: dict[UOp, UOp] = {}
    for memory, nodes in addresses.items():
        sizes = shape_of(memory)
        if not any(_divides(node) for node in nodes) or not all(isinstance(n, int) for n in sizes):
            continue
        indices = [flat_index(node.src[2:], sizes) for node in nodes]
        if not any(each.ops & _DIVISIONS for each in indices):
            whole = param(memory.arg[0], memory.dtype, (largest_size(sizes),))
            for node, each in zip(nodes, indices, strict=True):
                flat[node] = index_of(whole, [each], node.src[1])
    return substitute(kernel, flat) if flat else kernel


_DIVISIONS: Final = 1 << Op.FLOORDIV | 1 << Op.FLOORMOD


def _divides(node: UOp) -> bool:
    return any(each.ops & _DIVISIONS for each in node.src[2:])


def _without_nested_ranges(kernel: UOp) -> UOp:
    """Give a reduction or stage ranges of its own where what it is for closes the same ones.

    It has to be complete before that, so the two could not share a loop; with unlike ranges the
    loops may stand in any order, one inside the other too.
    """
    while True:
        nodes = topological(kernel)
        above = dict.fromkeys(nodes, 0)
        for node in reversed(nodes):
            own = 0
            for r in own_ranges(node):
                own |= 1 << r.arg
            if own & above[node]:
                break
            for source in node.src:
                above[source] |= above[node] | own
        else:
            return kernel
        first = first_range(node)
        kinds = kinds_of(kernel)
        number = 1 + max(kinds)
        loops: list[tuple[int, str]] = list(kinds.items())
        fresh: dict[UOp, UOp] = {}
        for old in own_ranges(node):
            if above[node] >> old.arg & 1:
                fresh[old] = make(Op.RANGE, old.dtype, old.src, number)
                address = [n for n, _ in loops].index(old.arg)
                loops.insert(address + 1, (number, kinds[old.arg]))
                number += 1
        parts = [substitute(part, fresh) for part in node.src[:first]]
        src = (*parts, *[fresh.get(r, r) for r in own_ranges(node)])
        renamed = make(node.op, node.dtype, src, node.arg)
        kernel = with_loops(substitute(kernel, {node: renamed}), loops)


def _closed_by_stores(kernel: UOp) -> UOp:
    """A kernel that closes no range itself: each store closes those that it leaves open."""
    outer = own_ranges(kernel)
    if not outer:
        return kernel
    stores = []
    for node in kernel.src[: first_range(kernel)]:
        free = [r for r in outer if node.ranges >> r.arg & 1]
        stores.append(make(node.op, node.dtype, (*node.src[:2], *free, *node.src[2:])))
    return make(Op.KERNEL, kernel.dtype, tuple(stores), kernel.arg)


def _loaded(node: UOp) -> UOp:
    """The node with a LOAD around each address that it uses as a value."""
    if node.op in (Op.LOAD, Op.INDEX) or Op.INDEX not in map(_OP, node.src):
        return node
    src = list(node.src)
    for i, source in enumerate(src):
        if source.op == Op.INDEX and not (node.op == Op.STORE and i == 0):
            src[i] = make(Op.LOAD, source.dtype, (source,))
    return make(node.op, node.dtype, tuple(src), node.arg)
