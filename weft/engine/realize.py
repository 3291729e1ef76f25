"""Turns lazy values into memory: the one way from a tensor graph to running kernels.

`realize(roots)` computes the roots and every write that they depend on, and says which nodes are
memory now. The tensor layer puts those BUFFER nodes into all graphs that are still lazy, so
nothing is computed twice and nobody reads memory that has been overwritten.

The path: a graph over several devices becomes one for each (`shards`); copies between devices are
carried out; then the graph with its buffers as parameters is scheduled (`schedule`), its kernels
are made runnable (`compile`), and the schedule runs (`run`). A graph of the same structure is
scheduled once: parameters make the graphs of two training steps the same node.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from weft.engine.bindings import take_bindings
from weft.engine.devices import default_device, device
from weft.engine.disk import brought, is_file, write_files
from weft.engine.interpret import interpret
from weft.engine.run import Prepared
from weft.engine.shards import Wanted, may_hold_parts, read_again, realize_parts
from weft.engine.storage import buffer_of, copy_contents, hand_over, new_buffer
from weft.engine.tape import Copy, NotTapedError, Run, Tape
from weft.engine.versions import Overwritten
from weft.ir.build import param, sink, store
from weft.ir.layouts import is_laid
from weft.ir.ops import MOVEMENT, Op
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


def realize(
    roots: Sequence[UOp], pending: Sequence[UOp] = (), tape: Tape | None = None
) -> dict[UOp, UOp]:
    """Compute the roots; the BUFFER node of each root and of each version written on the way.

    `pending` are graphs that stay lazy: what they read must survive the writes that happen now.
    With a `tape` nothing runs: it says what would be done to memory.
    """
    if may_hold_parts(roots) and any(map(is_laid, topological(*roots))):
        return realize_parts(roots, pending, partial(compute, tape=tape))
    made: dict[UOp, UOp] = {}
    found = compute([(root, None) for root in roots], pending, made, tape)
    made.update(zip(roots, found, strict=True))
    return made


def compute(
    wanted: Sequence[Wanted],
    pending: Sequence[UOp],
    made: dict[UOp, UOp],
    tape: Tape | None = None,
) -> list[UOp]:
    """Compute values of one device each; what else becomes memory on the way goes to `made`.

    Without the name of a device, a value is computed where its memory is.
    """
    roots = [graph for graph, _ in wanted]
    made.update(write_files(roots, pending, lambda value: realize([value])[value]))
    is_changed = bool(made) or any(root.ops >> Op.COPY & 1 for root in roots)
    versions = [n for n in topological(*roots) if n.op == Op.AFTER] if is_changed else []
    done = list(substitute(sink(*roots, *versions), made).src)
    done = carry_out_copies(done, pending, made, tape)
    if made:
        pending = substitute(sink(*pending), made).src
    graphs, done_versions = done[: len(roots)], done[len(roots) :]
    by_device: dict[str, list[UOp]] = {}
    found_names = devices_of(graphs)
    names = [name or own for (_, name), own in zip(wanted, found_names, strict=True)]
    for name, graph in zip(names, graphs, strict=True):
        if graph.op != Op.BUFFER:
            by_device.setdefault(name, []).append(graph)
    found: dict[tuple[str, UOp], UOp] = {}
    for name, several in by_device.items():
        computed = _realize_on(name, list(dict.fromkeys(several)), pending, tape)
        found.update({(name, node): memory for node, memory in computed.items()})
        made.update({n: m for n, m in computed.items() if n.op in (Op.AFTER, Op.BUFFER)})
    for version, node in zip(versions, done_versions, strict=True):
        if node.op == Op.BUFFER or node in made:
            made[version] = made.get(node, node)
    for version, memory in made.items():  # which was overwritten since, and kept elsewhere
        made[version] = made.get(memory, memory)
    return [found.get(pair, pair[1]) for pair in zip(names, graphs, strict=True)]


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


def carry_out_copies(
    roots: list[UOp], pending: Sequence[UOp], made: dict[UOp, UOp], tape: Tape | None
) -> list[UOp]:
    """The graphs with every COPY carried out; its source is computed on its own device first.

    Copies whose sources hold no others go together, so that a device computes all of them in one
    program.
    """
    while any(root.ops >> Op.COPY & 1 for root in roots):
        copies = [n for n in topological(*roots) if n.op == Op.COPY]
        ready = [n for n in copies if not n.src[0].ops >> Op.COPY & 1]
        by_device: dict[str, list[UOp]] = {}
        for copy, name in zip(ready, devices_of([n.src[0] for n in ready]), strict=True):
            by_device.setdefault(name, []).append(copy)
        files = [copy for name, several in by_device.items() if is_file(name) for copy in several]
        done = {copy: brought(copy.src[0], copy.arg) for copy in files}
        if not done:
            done = _copied(by_device, roots, pending, tape)
        made.update(done)
        roots = list(substitute(sink(*roots), done).src)
        pending = substitute(sink(*pending), done).src
    return roots


def _copied(
    by_device: dict[str, list[UOp]],
    roots: list[UOp],
    pending: Sequence[UOp],
    tape: Tape | None,
) -> dict[UOp, UOp]:
    """Memory on other devices for copies, and all memory that was made for their sources."""
    done: dict[UOp, UOp] = {}
    ready = [copy for several in by_device.values() for copy in several]
    for name, several in by_device.items():
        sources = list(dict.fromkeys(n.src[0] for n in several if n.src[0].op != Op.BUFFER))
        if sources:
            sources += read_again(sources, roots)
            done.update(_realize_on(name, sources, [*roots, *pending], tape))
    for copy in ready:
        source = done.get(copy.src[0], copy.src[0])
        done[copy] = new_buffer(source.dtype, shape_of(source), copy.arg)
        if tape is None:
            copy_contents(buffer_of(source), buffer_of(done[copy]), source)
        else:
            tape.actions.append(Copy(buffer_of(source), buffer_of(done[copy])))
    for source in {copy.src[0] for copy in ready}:
        # What needs no memory is computed anywhere, and a view is also a place that is written.
        if not source.ops >> Op.BUFFER & 1 or _is_view(source):
            done.pop(source, None)
    return done


def _is_view(node: UOp) -> bool:
    """Whether a node is memory, seen through movement ops or indices."""
    base = node
    while base.op in MOVEMENT or base.op == Op.INDEX:
        base = base.src[0]
    return base is not node and base.op in (Op.BUFFER, Op.AFTER)


def _realize_on(
    name: str, graphs: list[UOp], pending: Sequence[UOp], tape: Tape | None
) -> dict[UOp, UOp]:
    if is_file(name):
        raise computes_nothing()
    nodes = topological(*graphs)
    versions = [node for node in nodes if node.op == Op.AFTER]
    if device(name).target.renderer == "INTERPRETER":
        if tape is not None:
            raise NotTapedError
        return interpret(name, list(dict.fromkeys([*versions, *graphs])), nodes)
    overwritten = Overwritten(nodes)
    last = overwritten.last
    kept = overwritten.read_by(pending)
    values = [n for n in dict.fromkeys([*graphs, *kept]) if n not in last.values()]
    outputs = {node: new_buffer(node.dtype, shape_of(node), name) for node in values}
    body = sink(*last.values(), *(store(out, node) for node, out in outputs.items()))
    for memory in last:
        buffer_of(memory).prepare_write()
    _run(name, body, list(last), tape)
    made = dict(outputs)
    for memory, version in last.items():
        made[version] = hand_over(memory)
    return made


def _run(name: str, body: UOp, written: Sequence[UOp], tape: Tape | None) -> None:
    """Schedule a graph over buffers and run it."""
    memory = [node for node in topological(body) if node.op == Op.BUFFER]
    parameters = {
        node: param(slot, node.dtype, shape_of(node)) for slot, node in enumerate(memory)
    }
    unbound, variables = take_bindings(substitute(body, parameters))
    prepared = prepare(unbound, name)
    if tape is not None:
        if variables:
            raise NotTapedError
        buffers = (tuple(map(buffer_of, memory)), tuple(map(buffer_of, written)))
        tape.actions.append(Run(name, unbound, *buffers))
    elif settings.CHECK == "levels":
        _run_checked(unbound, prepared, memory, variables)
    else:
        prepared.run([buffer_of(node) for node in memory], variables)


def _run_checked(
    body: UOp, prepared: Prepared, memory: list[UOp], variables: dict[str, int]
) -> None:
    """Run, and compare what came out with the interpreter after every pass."""
    from weft.engine.check import LevelCheck

    check = LevelCheck(body, memory, variables)
    check.run_passes(prepared.device.target)
    prepared.run([buffer_of(node) for node in memory], variables)
    check.add_device()


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
