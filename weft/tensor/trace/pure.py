"""Writes as values: what `@function` and the transforms do with memory that a function wrote.

A write at tensor indices needs memory, so it makes AFTER(version, STORE(address, value)). A body
of a CALL, a batch and a tangent are functions of their parameters alone, and memory is no
parameter: `pure` turns each write that depends on a parameter into the value that the memory has
afterwards.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

from weft.engine.buffer_nodes import BufferKind
from weft.ir import movement
from weft.ir.build import index_of, scatter, where
from weft.ir.dtypes import dtypes
from weft.ir.ops import MOVEMENT, Op
from weft.ir.shapes import Shape, shape_of
from weft.ir.uop import UOp, make
from weft.ir.walk import rebuild, substitute, topological
from weft.tensor.checks import known
from weft.tensor.storage import Storage, lazy_storages, updated


class Outside:
    """The storages that are there before a function is traced, which it may write to."""

    def __init__(self) -> None:
        # A number that all memory which is made from now on is above.
        self._first = int(BufferKind(dtypes.bool, (), "PYTHON").without_memory().arg[0])
        self._lazy = {storage: storage.uop for storage in lazy_storages()}

    def written(self, inside: Collection[UOp]) -> list[Storage]:
        """Those whose version depends on nodes that only exist inside of the function."""
        wanted = set(inside)
        return [
            storage
            for storage in lazy_storages()
            if storage.uop.ops >> Op.PARAM & 1
            and self._was_there(storage)
            and wanted.intersection(topological(storage.uop))
        ]

    def _was_there(self, storage: Storage) -> bool:
        memory = storage.memory
        return storage in self._lazy or (memory is not None and memory.arg[0] < self._first)

    def settle(self, mapping: dict[UOp, UOp]) -> None:
        """Say what was written in terms of the arguments, as if no function had been traced."""
        for storage in self.written(mapping):
            storage.uop = substitute(storage.uop, mapping)

    def undo(self, inside: Collection[UOp]) -> None:
        """Be at the versions from before."""
        wanted = set(inside)
        for storage in self.written(inside):
            before = self._lazy.get(storage)
            if before is None:
                before = storage.uop
                while before.op == Op.AFTER and wanted.intersection(topological(before)):
                    before = before.src[0]
            elif storage.memory is not None and before.op not in (Op.AFTER, Op.BUFFER):
                store = make(Op.STORE, dtypes.void, (storage.memory, before))
                before = make(Op.AFTER, before.dtype, (storage.memory, store))
            storage.set_version(before)


def pure(outputs: Sequence[UOp], inside: Collection[UOp]) -> list[UOp]:
    """The graphs with all writes that depend on the nodes `inside` as values."""
    order = topological(*outputs)
    if not any(node.op == Op.AFTER for node in order):
        return list(outputs)
    depends = set(inside)
    made: dict[UOp, UOp] = {}
    for node in order:
        if node not in depends and not depends.isdisjoint(node.src):
            depends.add(node)
        new = rebuild(node, tuple([made[each] for each in node.src]))
        if node.op == Op.AFTER and node in depends:
            new = _after_writes(node, made)
        made[node] = new
    return [made[each] for each in outputs]


def _after_writes(node: UOp, made: dict[UOp, UOp]) -> UOp:
    """The value of a version after its writes."""
    version, *stores = node.src
    value = made[version]
    for store in stores:
        if store.op != Op.STORE:
            return rebuild(node, tuple([made[each] for each in node.src]))
        value = _written(value, store, made)
    return value


def _written(value: UOp, store: UOp, made: dict[UOp, UOp]) -> UOp:
    address, new = store.src[0], made[store.src[1]]
    index = address if address.op == Op.INDEX else None
    view = address.src[0] if index is not None else address
    steps = []
    while view.op in MOVEMENT:
        steps.append((view.op, view.arg, tuple([made[each] for each in view.src[1:]])))
        view = view.src[0]
    steps.reverse()
    if index is not None:
        shown = movement.apply_all(value, steps)
        new = _put(shown, [made[each] for each in index.src[1:]], new, shape_of(address))
    return updated(value, steps, new)


def _put(value: UOp, names: list[UOp], new: UOp, shape: Shape) -> UOp:
    """A value with others where the indices of its first axes say; the last for an index stays."""
    mask, *indices = names
    whole = shape_of(value)
    named, rest = whole[: len(indices)], whole[len(indices) :]
    positions = tuple([known(size) for size in shape[: len(shape) - len(rest)]])
    count = prod(positions)
    if not count:
        return value
    numbers = movement.reshape(movement.iota(count), positions)
    none = movement.full(numbers.dtype, -1, named)
    last = scatter(none, numbers, mask, indices, Op.MAX)
    is_kept = last < 0
    picked = index_of(
        movement.reshape(new, (count, *rest)),
        [where(is_kept, last.const_like(0), last)],
    )
    wide = movement.broadcast(movement.reshape(is_kept, (*named, *[1] * len(rest))), whole)
    return where(wide, value, picked)
