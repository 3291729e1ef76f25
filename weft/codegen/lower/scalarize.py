"""On a target of threads, lanes are for memory alone: arithmetic on vectors becomes scalar.

In: a lowered kernel, all ops native. Out, where the target says so: loads and stores may move
vectors; every other value is a scalar. A thread of a GPU has scalar registers, so nothing is lost;
LLVM and NVIDIA's assembler are known to make wrong code of packed arithmetic, and none is left.

    store p[i: x4] = load q[i: x4] + 1    ->    v = load q[i: x4]
                                                store p[i: x4] = (v.0 + 1, v.1 + 1, …)

An access whose mask differs from lane to lane becomes one access for each lane.
"""

from __future__ import annotations

from weft.codegen.context import CodegenContext
from weft.ir.dtypes import DType
from weft.ir.ops import ELEMENTWISE, Op
from weft.ir.uop import UOp, const, make
from weft.ir.walk import topological
from weft.support.errors import InternalError
from weft.target.compute import Simt
from weft.target.target import Target

_VALUES = ELEMENTWISE | {Op.VECTOR, Op.LANES, Op.SHUFFLE, Op.CONST}


def scalarize(kernel: UOp, context: CodegenContext) -> UOp:
    """Write arithmetic on vectors lane by lane, where the target wants it."""
    if not is_scalar(context.target):
        return kernel
    nodes = topological(kernel)
    if all(node.dtype.lanes == 1 for node in nodes):
        return kernel
    maker = _Scalars()
    for node in nodes:
        maker.add(node)
    return maker.scalars[kernel]


def is_scalar(target: Target) -> bool:
    """Whether threads of a target compute on scalars alone."""
    return isinstance(target.compute, Simt) and not target.compute.has_vectors


class _Scalars:
    """What each node becomes: a scalar, lanes, or for a store one store or several."""

    def __init__(self) -> None:
        self.scalars: dict[UOp, UOp] = {}
        self.lanes: dict[UOp, list[UOp]] = {}
        self.stores: dict[UOp, list[UOp]] = {}

    def add(self, node: UOp) -> None:
        if node.op == Op.STORE:
            self.stores[node] = self.stored(node)
        elif node.op == Op.LOAD and node.dtype.lanes > 1:
            self.lanes[node] = self.loaded(node)
        elif node.op == Op.INDEX and node.dtype.lanes > 1:
            pass  # its load or store looks at its sources
        elif node.op in _VALUES and node.dtype.lanes > 1:
            self.lanes[node] = self.computed(node)
        elif node.op == Op.LANES:
            self.scalars[node] = self.lane(node.src[0], node.arg[0])
        else:
            self.scalars[node] = self.rebuilt(node)

    def rebuilt(self, node: UOp) -> UOp:
        """A node with scalar sources; a store among them may be several now."""
        src: list[UOp] = []
        for source in node.src:
            src += self.stores.get(source) or [self.scalar(source)]
        return node if tuple(src) == node.src else make(node.op, node.dtype, tuple(src), node.arg)

    def scalar(self, node: UOp) -> UOp:
        found = self.scalars.get(node)
        if found is None:
            raise InternalError("a vector is used as a scalar", facts=[("node", repr(node))])
        return found

    def lane(self, node: UOp, number: int) -> UOp:
        """One lane of a value; a scalar has the same value in all."""
        return self.lanes[node][number] if node in self.lanes else self.scalar(node)

    def computed(self, node: UOp) -> list[UOp]:
        """The lanes of a value that is not loaded."""
        count, dtype = node.dtype.lanes, node.dtype.scalar
        if node.op == Op.CONST:
            return [const(dtype, node.arg)] * count
        if node.op == Op.VECTOR:
            return [self.lane(s, at) for s in node.src for at in range(s.dtype.lanes)]
        if node.op == Op.LANES:
            return [self.lane(node.src[0], at) for at in node.arg]
        return [
            make(node.op, dtype, tuple([self.lane(s, at) for s in node.src]), node.arg)
            for at in range(count)
        ]

    def loaded(self, node: UOp) -> list[UOp]:
        address, dtype, count = node.src[0], node.dtype.scalar, node.dtype.lanes
        whole = self.whole_address(address)
        if whole is not None:
            made = make(Op.LOAD, node.dtype, (whole, *map(self.scalar, node.src[1:])), node.arg)
            return [make(Op.LANES, dtype, (made,), (at,)) for at in range(count)]
        return [
            const(dtype, 0)
            if _is_never(one.src[1])
            else make(Op.LOAD, dtype, (one, *map(self.scalar, node.src[1:])), node.arg)
            for one in (self.address_of_lane(address, at) for at in range(count))
        ]

    def stored(self, node: UOp) -> list[UOp]:
        address, value, *rest = node.src
        ends = [
            part for source in rest for part in self.stores.get(source) or [self.scalar(source)]
        ]
        if address.dtype.lanes == 1:
            src = (self.scalar(address), self.lane(value, 0), *ends)
            return [node if src == node.src else make(Op.STORE, node.dtype, src, node.arg)]
        count = address.dtype.lanes
        whole = self.whole_address(address)
        if value.op == Op.CONTRACT:  # a tile is in registers, whatever its size
            assert whole is not None
            return [make(Op.STORE, node.dtype, (whole, self.scalar(value), *ends), node.arg)]
        lanes = [self.lane(value, at) for at in range(count)]
        if whole is not None:
            return [make(Op.STORE, node.dtype, (whole, _joined(lanes), *ends), node.arg)]
        addresses = [self.address_of_lane(address, at) for at in range(count)]
        return [
            make(Op.STORE, node.dtype, (one, lanes[at], *ends), node.arg)
            for at, one in enumerate(addresses)
            if not _is_never(one.src[1])
        ]

    def whole_address(self, address: UOp) -> UOp | None:
        """The address of a vector, if one mask stands for all of its lanes."""
        memory, mask, index = address.src
        lanes = [self.lane(mask, at) for at in range(address.dtype.lanes)]
        if any(each is not lanes[0] for each in lanes):
            return None
        return make(Op.INDEX, address.dtype, (self.scalar(memory), lanes[0], self.scalar(index)))

    def address_of_lane(self, address: UOp, number: int) -> UOp:
        memory, mask, index = address.src
        where = _plus(self.scalar(index), number)
        src = (self.scalar(memory), self.lane(mask, number), where)
        return make(Op.INDEX, address.dtype.scalar, src)


def _plus(index: UOp, number: int) -> UOp:
    if index.op == Op.CONST:
        return const(index.dtype, index.arg + number)
    return make(Op.ADD, index.dtype, (index, const(index.dtype, number))) if number else index


def _is_never(mask: UOp) -> bool:
    return mask.op == Op.CONST and not mask.arg


def _joined(lanes: list[UOp]) -> UOp:
    """Lanes as one vector; those of a vector in their order are that vector."""
    dtype: DType = lanes[0].dtype.vector(len(lanes))
    first = lanes[0].src[0] if lanes[0].op == Op.LANES else None
    if first is not None and first.dtype is dtype:
        order = [
            each.arg if each.op == Op.LANES and each.src[0] is first else () for each in lanes
        ]
        if order == [(at,) for at in range(len(lanes))]:
            return first
    return make(Op.VECTOR, dtype, tuple(lanes))
