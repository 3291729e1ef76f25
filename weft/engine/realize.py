"""Turns lazy values into memory: the one way from a tensor graph to running kernels.

`realize(roots)` computes the roots and every write that they depend on, and says which nodes are
memory now. The tensor layer puts those BUFFER nodes into all graphs that are still lazy, so
nothing is computed twice and nobody reads memory that has been overwritten.

The path: copies between devices first; then the graph with its buffers as parameters is scheduled
(`schedule`), its kernels are made runnable (`compile`), and the schedule runs (`run`). A graph of
the same structure is scheduled once: parameters make the graphs of two training steps the same
node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from weft.engine.bindings import take_bindings
from weft.engine.devices import default_device, device
from weft.engine.disk import brought, is_file, write_files
from weft.engine.interpret import interpret
from weft.engine.run import Prepared
from weft.engine.storage import buffer_from, buffer_of, hand_over, new_buffer, read_bytes
from weft.ir.build import param, sink, store
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.text import dump
from weft.ir.uop import UOp
from weft.ir.walk import substitute, topological
from weft.runtime.disk.device import computes_nothing
from weft.schedule.schedule import Schedule, make_schedule
from weft.support.errors import DeviceError
from weft.support.settings import cache_key, settings

_PREPARED: Final[dict[tuple[UOp, str, object], Prepared]] = {}
_MOST_PREPARED: Final = 512


def realize(roots: Sequence[UOp], pending: Sequence[UOp] = ()) -> dict[UOp, UOp]:
    """Compute the roots; the BUFFER node of each root and of each version written on the way.

    `pending` are graphs that stay lazy: what they read must survive the writes that happen now.
    """
    made = write_files(roots, pending, lambda value: realize([value])[value])
    graphs = _copy_between_devices([substitute(root, made) for root in roots], made)
    by_device: dict[str, list[tuple[UOp, UOp]]] = {}
    for root, graph, name in zip(roots, graphs, devices_of(graphs), strict=True):
        if graph.op == Op.BUFFER:
            made[root] = graph
        else:
            by_device.setdefault(name, []).append((root, graph))
    for name, pairs in by_device.items():
        found = _realize_on(name, [graph for _, graph in pairs], pending)
        made.update(found)
        made.update({root: found[graph] for root, graph in pairs})
    return made


def device_of(node: UOp) -> str:
    """The device on which a graph is computed: that of its memory, which must be one."""
    return devices_of([node])[0]


def devices_of(graphs: Sequence[UOp]) -> list[str]:
    """The device of each graph."""
    found: dict[UOp, str | None] = {}
    for node in topological(*graphs):
        name: str | None = node.arg[2] if node.op == Op.BUFFER else None
        for source in node.src:
            other = found[source]
            if name is not None and other is not None and other != name:
                raise DeviceError(
                    f"operands are on different devices ({', '.join(sorted((name, other)))})",
                    law="one operation runs on one device",
                    fix="move one of them: x.to(y.device)",
                )
            name = name or other
        found[node] = name
    return [found[graph] or default_device() for graph in graphs]


def _copy_between_devices(roots: list[UOp], made: dict[UOp, UOp]) -> list[UOp]:
    """The graphs with every COPY carried out; its source is computed on its own device first."""
    while any(root.ops >> Op.COPY & 1 for root in roots):
        copies = [n for n in topological(*roots) if n.op == Op.COPY]
        ready = [n for n in copies if not n.src[0].ops >> Op.COPY & 1]
        read = {n: brought(n.src[0], n.arg) for n in ready if is_file(device_of(n.src[0]))}
        if read:
            made.update(read)
            roots = [substitute(root, read) for root in roots]
            continue
        first = ready[0]
        source = realize([first.src[0]])[first.src[0]]
        made[first.src[0]] = source
        data = memoryview(read_bytes(source))
        made[first] = buffer_from(first.dtype, shape_of(source), first.arg, data)
        done = {first: made[first], first.src[0]: source}
        roots = [substitute(root, done) for root in roots]
    return roots


def _realize_on(name: str, graphs: list[UOp], pending: Sequence[UOp]) -> dict[UOp, UOp]:
    if is_file(name):
        raise computes_nothing()
    nodes = topological(*graphs)
    versions = [node for node in nodes if node.op == Op.AFTER]
    if device(name).target.renderer == "INTERPRETER":
        return interpret(name, list(dict.fromkeys([*versions, *graphs])), nodes)
    overwritten = Overwritten(nodes)
    last = overwritten.last
    kept = overwritten.read_by(pending)
    values = [n for n in dict.fromkeys([*graphs, *kept]) if n not in last.values()]
    outputs = {node: new_buffer(node.dtype, shape_of(node), name) for node in values}
    body = sink(*last.values(), *(store(out, node) for node, out in outputs.items()))
    for memory in last:
        buffer_of(memory).prepare_write()
    _run(name, body)
    made = dict(outputs)
    for memory, version in last.items():
        made[version] = hand_over(memory)
    return made


def _last_versions(versions: list[UOp]) -> dict[UOp, UOp]:
    """For each memory that is written, the version that no write replaces."""
    last: dict[UOp, UOp] = {}
    for version in versions:  # older ones come first
        memory = version
        while memory.op == Op.AFTER:
            memory = memory.src[0]
        if memory.op == Op.BUFFER:
            last[memory] = version
    return last


class Overwritten:
    """What is not there any more once some graphs have been computed: versions of memory."""

    def __init__(self, nodes: Iterable[UOp]) -> None:
        """`nodes` are all nodes of the graphs, sources first."""
        versions = [node for node in nodes if node.op == Op.AFTER]
        self.last = _last_versions(versions)
        self._written = set(versions) | set(self.last)
        self._kept = set(self.last.values())

    def __bool__(self) -> bool:
        return bool(self._written)

    def read_by(self, graphs: Iterable[UOp]) -> list[UOp]:
        """The versions that other graphs read and that will be gone."""
        if not self._written:
            return []
        seen = topological(*graphs, enter=lambda node: node not in self._written)
        return [node for node in seen if node in self._written and node not in self._kept]


def _run(name: str, body: UOp) -> None:
    """Schedule a graph over buffers and run it."""
    memory = [node for node in topological(body) if node.op == Op.BUFFER]
    parameters = {
        node: param(slot, node.dtype, shape_of(node)) for slot, node in enumerate(memory)
    }
    unbound, variables = take_bindings(substitute(body, parameters))
    prepared = prepare(unbound, name)
    if settings.CHECK == "levels":
        _run_checked(body, prepared, memory, variables)
    else:
        prepared.run([buffer_of(node) for node in memory], variables)


def _run_checked(
    body: UOp, prepared: Prepared, memory: list[UOp], variables: dict[str, int]
) -> None:
    """Run, and compare what came out with the interpreter after every phase."""
    from weft.engine.check import LevelCheck

    check = LevelCheck(memory, variables)
    check.add_tensor_level(body)
    check.add_schedule(prepared.schedule)
    check.add_codegen(prepared.schedule, prepared.device.target)
    prepared.run([buffer_of(node) for node in memory], variables)
    check.add_device()
    check.verify(body)


def prepare(body: UOp, name: str) -> Prepared:
    """The schedule of a graph over parameters, with its programs; made once per structure."""
    on = device(name)
    key = (body, name, cache_key())
    found = _PREPARED.get(key)
    if found is None:
        schedule = make_schedule(body, on.target)
        if settings.DEBUG >= 1:
            _print_schedule(name, schedule)
        found = Prepared(schedule, on)
        if len(_PREPARED) >= _MOST_PREPARED:
            _PREPARED.pop(next(iter(_PREPARED)))
        _PREPARED[key] = found
        if settings.DEBUG >= 4:
            for step in found.steps:
                print(step.loaded.program.source)
    return found


def _print_schedule(name: str, schedule: Schedule) -> None:
    count, size = len(schedule.kernels.src), schedule.plan.size
    print(f"schedule on {name}: {count} kernels, {size} bytes of temporaries")
    if settings.DEBUG >= 5:
        for report in schedule.reports:
            print(report)
    if settings.DEBUG >= 3:
        for line in schedule.log:
            print(f"  {line}")
        for call in schedule.kernels.src:
            print(dump(call.arg))
