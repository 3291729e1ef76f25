"""Kernel bodies: the value of each node at an address, as a scalar expression over ranges.

In: what the walk decided. Out: for a kernel, its STOREs over the PARAMs of the program and over
placeholders. A value that another kernel materializes is a LOAD; everything else is computed here.
Equal values at equal addresses are the same node, so they are computed once. `read` says which
writes the loads of some memory have to see.
"""

from __future__ import annotations

from collections import defaultdict

from weft.ir.bounds import bounds
from weft.ir.build import index, index_of, load, reduce_ranges, scan_range, true, variable
from weft.ir.dtypes import dtypes
from weft.ir.ops import MOVEMENT, Op
from weft.ir.reduction.reductions import identity
from weft.ir.shapes import Shape, shape_of
from weft.ir.uop import UOp, const, make
from weft.ir.views import memory_of
from weft.ir.walk import substitute, topological
from weft.rewrite.driver import rewrite
from weft.rules.in_bounds import is_in_bounds
from weft.rules.memory import KERNEL_RULES
from weft.rules.simplify import simplify
from weft.rules.validity import narrow, narrow_mask
from weft.schedule.fuse.inline import reduction_at
from weft.schedule.fuse.kernel import Kernel, Store
from weft.schedule.fuse.walk import Fused
from weft.schedule.indexing import Address, seen_through, through, validity
from weft.schedule.memory import MEMORY, gather_address, placeholder, resolve_view, target_of

Key = tuple[UOp, Address]


class Builder:
    """Builds the expressions of one kernel."""

    def __init__(self, fused: Fused, kernel: Kernel) -> None:
        self.fused = fused
        self.kernel = kernel
        self.read: defaultdict[UOp, list[UOp]] = defaultdict(list)  # memory -> STOREs and CALLs
        self._made: dict[Key, UOp] = {}

    def store(self, item: Store) -> UOp:
        """The STORE of one value, simplified."""
        value = self.value(*self._at(item.value, item.address))
        base, target = item.memory, item.target
        if item.node.op == Op.STORE:
            target = self._load_indices(target_of(item.node), item.address, target)
        target = guard(target, shape_of(memory_of(base)))
        address = index_of(memory_of(base), target.indices, target.mask)
        if item.is_scatter:
            self.read[memory_of(base)] += base.src[1:] if base.op == Op.AFTER else ()
            value = make(item.node.src[1].arg[0], value.dtype, (load(address), value))
        arg = "ordered" if item.is_scatter else None
        made = make(Op.STORE, dtypes.void, (address, value, *item.ranges), arg)
        return rewrite(made, KERNEL_RULES)

    def _load_indices(self, view: UOp, address: Address, target: Address) -> Address:
        """The target of a store through index tensors, with the loaded indices in it."""
        view, address = seen_through(view, address)
        if view.op != Op.INDEX:
            return target
        loaded = self._loaded(view, address)
        mask = substitute(target.mask, loaded)
        own_mask = self._at(view.src[1], gather_address(view, address)[1])
        indices = tuple(substitute(i, loaded) for i in target.indices)
        return Address(indices, mask & self.value(*own_mask))

    def value(self, node: UOp, address: Address) -> UOp:
        """The value of a node at an address. Works off a stack, so depth is not limited."""
        stack: list[Key] = [(node, address)]
        waiting: dict[Key, list[Key]] = {}
        while stack:
            key = stack[-1]
            if key in self._made:
                stack.pop()
                continue
            sources = waiting.get(key)
            if sources is None:
                sources = waiting[key] = self._sources(*key)
                missing = [source for source in sources if source not in self._made]
                if missing:
                    stack.extend(missing)
                    continue
            self._made[key] = self._make(*key, [self._made[source] for source in sources])
            stack.pop()
        return self._made[(node, address)]

    def _is_loaded(self, node: UOp) -> bool:
        found = self.fused.materialized.get(node)
        return node.op in MEMORY or (found is not None and found.kernel is not self.kernel)

    def _sources(self, node: UOp, address: Address) -> list[Key]:
        """The values that the value of a node needs."""
        if self._is_loaded(node) or not node.src or node.op == Op.IOTA:
            return []
        if node.op in MOVEMENT:
            return [(node.src[0], through(node, address))]
        if node.op == Op.REDUCE:
            return [
                (node.src[0], reduction_at(self.fused.reductions, node, address, self.kernel)[1])
            ]
        if node.op == Op.INDEX:
            source, index_address = gather_address(node, address)
            keys = [(node.src[0], source)]
            return keys + [self._at(part, index_address) for part in node.src[1:]]
        if node.op == Op.BIND:
            return []
        return [self._at(source, address) for source in node.src]

    def _at(self, node: UOp, address: Address) -> Key:
        return (node, address if shape_of(node) else Address((), address.mask))

    def _make(self, node: UOp, address: Address, made: list[UOp]) -> UOp:
        if self._is_loaded(node):
            return self._load(node, address)
        if node.op in (Op.CONST, Op.VARIABLE):
            return node
        if node.op == Op.BIND:
            return node.src[0]
        if node.op == Op.IOTA:
            return address.indices[0].cast(node.dtype)
        if node.op == Op.PAD:
            return validity(node, address).where(made[0], const(node.dtype, 0))
        if node.op in MOVEMENT or node.op in (Op.COPY, Op.STAGE):
            return made[0]
        if node.op == Op.REDUCE:
            ranges = reduction_at(self.fused.reductions, node, address, self.kernel)[0]
            loops = [loop for loop in ranges if loop.op == Op.RANGE]
            if 0 in shape_of(node.src[0]):
                return const(node.dtype, identity(node.arg[0], node.dtype))
            return reduce_ranges(made[0], node.arg[0], loops) if loops else made[0]
        if node.op == Op.SCAN:
            (axis,) = node.arg[1]
            at = address.indices[axis]
            return made[0] if at.op == Op.CONST else scan_range(made[0], node.arg[0], at)
        if node.op == Op.INDEX:
            value = substitute(made[0], self._loaded(node, address))
            return value if made[1] is true() else made[1].where(value, const(node.dtype, 0))
        return make(node.op, node.dtype, tuple(made), node.arg)

    def _loaded(self, node: UOp, address: Address) -> dict[UOp, UOp]:
        """What stands for the indices of a gather, and what they are."""
        at = gather_address(node, address)[1]
        found: dict[UOp, UOp] = {}
        for axis, part in enumerate(node.src[2:]):
            key = self._at(part, at)
            value = self._made[key] if key in self._made else self.value(*key)
            stand = placeholder(node, axis, at.indices, at.mask)
            found[stand] = value.cast(dtypes.index)
        return found

    def _load(self, node: UOp, address: Address) -> UOp:
        found = None if node.op in MEMORY else self.fused.materialized[node]
        base, target = resolve_view(node if found is None else found.memory, address)
        memory = memory_of(base)
        if found is not None:
            self.read[memory].append(found.effect)
        elif node.op == Op.AFTER:
            self.read[memory] += node.src[1:]
        if 0 in shape_of(memory):
            return const(node.dtype, 0)  # there is nothing to read, and nobody looks
        guarded = guard(target, shape_of(memory))
        return load(index_of(memory, guarded.indices, guarded.mask))


def guard(address: Address, shape: Shape) -> Address:
    """An address whose indices are proven to lie in memory, or stand behind a mask that says so.

    Under a mask the indices are simplified by what it says, which often is the proof.
    """
    loaded = _placeholders(address)
    mask = substitute(address.mask, loaded)
    indices = tuple([substitute(i, loaded) for i in address.indices])
    if mask is not true():
        mask = narrow_mask(mask)
        indices = tuple([narrow(i, mask) for i in indices])
    for i, size in zip(indices, shape, strict=True):
        if not is_in_bounds(i, size, mask):
            mask = mask & ~(i < 0) & (i < index(size))
    back = {variable: stand for stand, variable in loaded.items()}
    made = tuple([simplify(substitute(i, back)) for i in indices])
    return Address(made, simplify(substitute(simplify(mask), back)))


def _placeholders(address: Address) -> dict[UOp, UOp]:
    """The loaded indices of an address, and variables that keep them whole meanwhile."""
    loads = [
        node
        for node in topological(address.mask, *address.indices)
        if node.op == Op.CAST and node.src[0].op == Op.LOAD
    ]
    return {node: variable(f"loaded {number}", *bounds(node)) for number, node in enumerate(loads)}
