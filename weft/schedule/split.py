"""Cuts the fused graph into kernels and puts them in order.

In: what was fused, in the context. Out: a LINEAR of CALLs. The body of a call is a KERNEL whose
ranges and parameters are numbered by their place in it, so equal kernels are the same node,
whatever buffers they run on.
"""

from __future__ import annotations

from weft.ir.accumulation import may_meet
from weft.ir.build import items, param, range_
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.results import FILLING, results_of
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp, make
from weft.ir.views import memory_of, version_of
from weft.ir.walk import substitute, topological
from weft.rules.simplify import simplify
from weft.schedule.build import Builder
from weft.schedule.context import Context
from weft.schedule.fuse.fuse import Fusion
from weft.schedule.fuse.kernel import Kernel, Store
from weft.support.errors import InternalError


def split_kernels(sink: UOp, context: Context) -> UOp:
    """The schedule: every kernel once, after all that it waits for."""
    fusion = context.fusion
    calls: list[UOp] = []
    for kernel in in_order(fusion.kernels):
        if kernel.call is None and 0 in kernel.extents:
            continue  # it writes no element
        if kernel.call is None:
            calls.append(_call(fusion, kernel))
        else:
            calls += _called(fusion, kernel.call, context)
    return make(Op.LINEAR, dtypes.void, tuple(calls))


def _called(fusion: Fusion, call: UOp, context: Context) -> list[UOp]:
    """The kernels of a called function, on the memory of this call."""
    arguments = [_memory(fusion, argument) for argument in call.src]
    results = [
        fusion.temporary(result) if (kept := fusion.kept.get(result)) is None else kept.memory
        for result in _results(call)
    ]
    if call.arg.op in FILLING:
        return [_filling(call.arg, arguments + results)]
    body = context.schedule_body(call.arg)
    memory = dict(enumerate(arguments))
    for number, result in enumerate(results):
        memory[body.parameters + number] = result
    for inner in body.temporaries:
        memory[inner.arg[0]] = fusion.temporary(inner)
    return [
        make(Op.CALL, dtypes.void, tuple(memory[m.arg[0]] for m in part.src), part.arg)
        for part in body.kernels.src
    ]


def _results(call: UOp) -> list[UOp]:
    """The nodes that name the results of a call."""
    values = results_of(call)
    if values is None:
        return [] if call.dtype is dtypes.void else [call]
    return items(call, values)


def _filling(body: UOp, memory: list[UOp]) -> UOp:
    """A kernel on memory by slot; a program says itself in which order it takes it."""
    if body.op == Op.PROGRAM:
        memory = [memory[part.arg[0]] for part in body.src if part.op == Op.PARAM]
    return make(Op.CALL, dtypes.void, tuple(memory), body)


def _memory(fusion: Fusion, node: UOp) -> UOp:
    kept = fusion.kept.get(node)
    return memory_of(node) if kept is None else memory_of(kept.memory)


def in_order(kernels: list[Kernel]) -> list[Kernel]:
    """The kernels, each after those it needs or must not overtake; as they were made otherwise.

    A kernel's round is one after the last of those it waits for. One that waits for nothing, as
    one that unpacks weights, is one before the first that waits for it: it reads memory that is
    there anyway, and what it makes takes room until it is used.
    """
    made = list(reversed(kernels))  # consumers are made first
    waits = {kernel: (kernel.needs | kernel.after) - {kernel} for kernel in made}
    followers: dict[Kernel, list[Kernel]] = {kernel: [] for kernel in made}
    for kernel, sources in waits.items():
        for source in sources:
            followers[source].append(kernel)
    left = {kernel: len(sources) for kernel, sources in waits.items()}
    rounds = dict.fromkeys((kernel for kernel in made if not left[kernel]), 0)
    ready = list(rounds)
    for kernel in ready:  # grows while it is walked
        for follower in followers[kernel]:
            rounds[follower] = max(rounds.get(follower, 0), rounds[kernel] + 1)
            left[follower] -= 1
            if not left[follower]:
                ready.append(follower)
    if len(ready) < len(made):
        waiting = [kernel for kernel in made if left[kernel]]
        raise InternalError("kernels wait for each other", facts=[("kernels", waiting)])
    for kernel in made:
        if not waits[kernel] and followers[kernel]:
            rounds[kernel] = min(rounds[follower] for follower in followers[kernel]) - 1
    return sorted(made, key=rounds.__getitem__)


def _call(fusion: Fusion, kernel: Kernel) -> UOp:
    builder = Builder(fusion, kernel)
    made = [builder.store(item) for item in sorted(kernel.stores, key=_age)]
    last = {(store.src[0], store.src[2:]): store for store in made}  # of writes to one place
    stores = list(last.values())
    nodes = topological(*stores)
    used = {node for node in nodes if node.op == Op.RANGE}
    met = _met(kernel, stores)
    order = sorted((loop for loop in kernel.order if loop in used), key=lambda loop: loop in met)
    order += [loop for loop in kernel.ranges if loop in used and loop not in set(order)]
    renamed: dict[UOp, UOp] = {
        loop: range_(number, simplify(loop.src[0])) for number, loop in enumerate(order)
    }
    arguments = _arguments(stores, nodes)
    for slot, memory in enumerate(arguments):
        renamed[memory] = param(slot, memory.dtype, shape_of(memory))
    body = tuple(simplify(substitute(store, renamed)) for store in stores)
    in_turn = met | {node.src[1] for node in nodes if node.op == Op.SCAN}
    kinds = ["ordered" if loop in in_turn else "loop" for loop in order]
    loops = tuple(enumerate(kinds))
    result = make(Op.KERNEL, dtypes.void, body, (_name(kernel, body, order), loops))
    return make(Op.CALL, dtypes.void, tuple(arguments), result)


def _met(kernel: Kernel, stores: list[UOp]) -> set[UOp]:
    """The loops over updates that may go to one place."""
    if not any(item.is_scatter for item in kernel.stores):
        return set()
    (made,) = stores
    met = may_meet(made)
    return {loop for loop in made.src[2:] if met >> loop.arg & 1}


def _age(item: Store) -> int:
    """How many writes of the same memory come before a store: they happen before it."""
    version = version_of(item.node.src[0]) if item.node.op == Op.STORE else item.memory
    count = 0
    while version.op == Op.AFTER:
        version = version.src[0]
        count += 1
    return count


def _arguments(stores: list[UOp], nodes: list[UOp]) -> list[UOp]:
    """The memory of a kernel: what it writes first, then what it reads."""
    written = [store.src[0].src[0] for store in stores]
    read = [node for node in nodes if node.op in (Op.PARAM, Op.BUFFER)]
    return list(dict.fromkeys(written + read))


def _name(kernel: Kernel, stores: tuple[UOp, ...], order: list[UOp]) -> str:
    """What a person sees: how it computes, how many outputs, and its extents."""
    ops = 0
    for store in stores:
        ops |= store.ops
    kind = "scan" if ops >> Op.SCAN & 1 else "fold" if ops >> Op.REDUCE & 1 else "map"
    if any(item.is_scatter for item in kernel.stores):
        kind = "scatter"
    sizes = [str(r.src[0].arg) if r.src[0].op == Op.CONST else "n" for r in order]
    outputs = f"{len(stores)}x" if len(stores) > 1 else ""
    return "_".join([kind + outputs, *sizes]) if sizes else kind + outputs
