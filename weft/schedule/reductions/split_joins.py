"""Reductions that need each other, in parts: each part by itself, then all parts together.

`split_reductions` asks where a reduction gets two steps. What it needs is known only once that is
complete, so the data would be read once for each of them:

    m = reduce MAX: x                       mb = stage(reduce MAX: x, for each part)
    l = reduce ADD: exp(x - m)        ->    lb = stage(reduce ADD: exp(x - mb), for each part)
                                            m = reduce MAX: mb
                                            l = reduce ADD: lb * exp(mb - m)

`rules/joins` derives the last line from the body. It takes scalar expressions, so the body is
written as one: what changes along the reduced axes reads memory at a range, the rest does not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from weft.ir.build import (
    Size,
    global_stage,
    index_of,
    load,
    param,
    range_,
    reduce_axes,
    reduce_ranges,
)
from weft.ir.movement import expand, reshape
from weft.ir.ops import ELEMENTWISE, MOVEMENT, Op
from weft.ir.shapes import Shape, shape_of
from weft.ir.uop import UOp, const, make
from weft.ir.walk import topological
from weft.rules.joins import Join, Need, Part, join_of
from weft.schedule.reductions.repeated_values import with_rows


def try_join_parts(
    node: UOp, axis: int, count: int, made: Mapping[UOp, UOp], last: int | None = None
) -> UOp | None:
    """A reduction that needs another, over `count` parts of an axis; None if it cannot be.

    `made` has what became of the nodes below it. Neighboring axes up to a `last` one are taken as
    one axis.
    """
    scalars = _Scalars(node)
    found = scalars.joined()
    if found is None or not all(leaf in made for leaf in scalars.nodes.values()):
        return None
    return _InParts(scalars, axis, axis if last is None else last, count, made).joined(*found)


def reference_of(node: UOp) -> UOp | None:
    """The reduction that another one needs, and whose parts it can be joined with."""
    found = _Scalars(node).joined()
    return None if found is None else found[0]


class _Scalars:
    """The body of a reduction over axes as a scalar expression.

    `nodes` are the tensors that stand for themselves in it, by the scalar that each became.
    """

    def __init__(self, node: UOp) -> None:
        self.node = node
        self.full = shape_of(node.src[0])
        self.rows = shape_of(node)
        self.sizes = _long(self.rows)
        self.body = with_rows(node.src[0], node.arg[1])
        self.loop = range_(0, 2)
        self.of: dict[UOp, UOp] = {}
        self.nodes: dict[UOp, UOp] = {}
        self.references: list[UOp] = []
        for part in topological(self.body, enter=self.is_inside):
            self.of[part] = self.scalar(part)
            if self.is_reduction(part):
                self.references.append(part)

    def joined(self) -> tuple[UOp, Need, Join] | None:
        """The first reduction that it needs and can be joined with, and how."""
        for reference in self.references:
            need = self.need(reference)
            join = join_of(need)
            if join is not None:
                return reference, need, join
        return None

    def is_reduction(self, node: UOp) -> bool:
        """Whether a node reduces values like these along the same axes."""
        is_alike = node.op == Op.REDUCE and node.arg[1] == self.node.arg[1]
        return is_alike and shape_of(node.src[0]) == self.full

    def is_inside(self, node: UOp) -> bool:
        """Whether a node is computed element by element from its sources."""
        shape = shape_of(node)
        if node.op in ELEMENTWISE or self.is_reduction(node):
            return shape in (self.full, ()) or _long(shape) == self.sizes
        if node.op == Op.EXPAND:
            return shape == self.full and shape_of(node.src[0]) == self.rows
        return node.op in (Op.RESHAPE, Op.PERMUTE) and self.is_rows(node)

    def is_rows(self, node: UOp) -> bool:
        """Whether a view has a number for each row, in the same order as what it is a view of."""
        (source,) = node.src[:1]
        if not _long(shape_of(node)) == _long(shape_of(source)) == self.sizes:
            return False
        order = node.arg if node.op == Op.PERMUTE else ()
        moved = [axis for axis in order if shape_of(source)[axis] != 1]
        return moved == sorted(moved)

    def scalar(self, node: UOp) -> UOp:
        known = _constant(node)
        if known is not None:
            return known
        if self.is_inside(node):
            src = tuple([self.of[source] for source in node.src])
            if node.op in MOVEMENT:
                return src[0]
            if node.op == Op.REDUCE:
                made = reduce_ranges(src[0], node.arg[0], (self.loop,))
                self.nodes[made] = node
                return made
            return make(node.op, node.dtype, src, node.arg)
        made = self.leaf(node)
        self.nodes[made] = node
        return made

    def leaf(self, node: UOp) -> UOp:
        """A value from elsewhere: one for each iteration, or the same for all."""
        number = 1 + len(self.nodes)
        if shape_of(node) != self.full:
            return load(index_of(param(number, node.dtype, ()), ()))
        size = _counted(node)
        if size is not None:
            return range_(number, size).cast(node.dtype)
        return load(index_of(param(number, node.dtype, (2,)), (self.loop,)))

    def need(self, reference: UOp) -> Need:
        """What the reduction needs of another one."""
        count = math.prod(int(self.full[axis]) for axis in self.node.arg[1])
        body, element = self.of[self.body], self.of[reference.src[0]]
        return Need(
            self.node.arg[0],
            body,
            self.of[reference],
            element,
            lambda node: bool(node.ranges),
            count,
        )


def _long(shape: Shape) -> tuple[Size, ...]:
    """The sizes of a shape that are not 1."""
    return tuple([size for size in shape if size != 1])


def _constant(node: UOp) -> UOp | None:
    """A constant that is the same in all elements, as a scalar."""
    while node.op in (Op.EXPAND, Op.RESHAPE):
        node = node.src[0]
    return node if node.op == Op.CONST else None


def _counted(node: UOp) -> int | None:
    """Below which number the positions are that a node is made of; None if it is another value."""
    while node.op in MOVEMENT and node.op != Op.PAD:
        node = node.src[0]
    if node.op != Op.IOTA or node.arg[0].__class__ is not int:
        return None
    return int(node.arg[0])


class _InParts:
    """A reduction in two steps: over the elements of each part, then over the parts."""

    def __init__(
        self, scalars: _Scalars, axis: int, last: int, count: int, made: Mapping[UOp, UOp]
    ) -> None:
        self.scalars = scalars
        self.made = made
        self.axis = axis
        sizes, axes = scalars.full, scalars.node.arg[1]
        length = math.prod(int(size) for size in sizes[axis : last + 1]) // count
        self.apart = (*sizes[:axis], count, length, *sizes[last + 1 :])
        behind = last - axis - 1  # how far axes move that lie behind these
        self.inner = [a if a < axis else axis + 1 if a <= last else a - behind for a in axes]
        self.inner = list(dict.fromkeys(self.inner))
        self.parts = tuple(1 if a in self.inner else n for a, n in enumerate(self.apart))
        self.whole = tuple(1 if a == axis else n for a, n in enumerate(self.parts))
        self.elements = math.prod(int(self.apart[a]) for a in self.inner)
        self.count = count

    def joined(self, reference: UOp, need: Need, join: Join) -> UOp:
        dtype, size = need.reference.dtype, need.body.dtype
        over = reshape(self.made[reference.src[0]], self.apart)
        near = reduce_axes(over, reference.arg[0], self.inner)  # of the kernel that stores both
        first = global_stage(near)
        last = reduce_axes(first, reference.arg[0], (self.axis,))
        known = {need.reference: expand(near, self.apart), need.element: over}
        count, total = (const(size, self.elements * n) for n in (1, self.count))
        part = Part(need.reference, count)
        value = reduce_axes(self.tensor(join.body(part), known, self.apart), join.op, self.inner)
        if join.error is not None and join.without is not None:
            # The sum of a long part is rounded, which its square would show.
            errors = self.tensor(join.error(part), known, self.apart)
            error = reduce_axes(errors, Op.ADD, self.inner)
            value = join.without(value, error, part)
            first = global_stage(near + error)
            last = reduce_axes(first, reference.arg[0], (self.axis,))
        value = global_stage(value)
        x, old, new = (param(slot, kind, ()) for slot, kind in enumerate((size, dtype, dtype)))
        moved = join.moved(x, Part(old, count), Part(new, total))
        known = {x: value, old: first, new: expand(last, self.parts)}
        result = reduce_axes(self.tensor(moved, known, self.parts), join.op, (self.axis,))
        for op, factor in join.factors:
            other = self.tensor(factor, {need.reference: last}, self.whole)
            result = make(op, result.dtype, (result, _cast(other, result)))
        return reshape(result, self.scalars.rows)

    def tensor(self, root: UOp, known: Mapping[UOp, UOp], shape: Shape) -> UOp:
        """A scalar expression for all elements of a shape."""
        found = dict(known)
        for node in topological(root, enter=lambda each: each not in self.scalars.nodes):
            if node in found or node.op == Op.CONST:
                found.setdefault(node, node)
            elif node in self.scalars.nodes:
                found[node] = self.read(self.scalars.nodes[node], shape)
            else:
                src = tuple([found[source] for source in node.src])
                found[node] = make(node.op, node.dtype, src, node.arg)
        return found[root]

    def read(self, node: UOp, shape: Shape) -> UOp:
        """A tensor of the body, as one of these shapes."""
        value = self.made[node]
        if shape_of(node) == ():
            return value
        if shape_of(node) == self.scalars.full:
            return reshape(value, shape)
        return expand(reshape(value, self.whole), shape)


def _cast(node: UOp, like: UOp) -> UOp:
    return node if node.dtype is like.dtype else make(Op.CAST, like.dtype, (node,))
