"""Iterations lazy values into memory: the one way from a tensor graph to running kernels.

`realize(request)` computes the roots of a request and every write that they depend on, and says
which nodes are memory now. The tensor layer puts those BUFFER nodes into all graphs that are still
lazy, so nothing is computed twice and nobody reads memory that has been overwritten.

The path: a graph over several devices becomes one for each (`shards`); copies between devices are
carried out; then the graph with its buffers as parameters is scheduled (`schedule`), its kernels
are made runnable (`compile`), and the schedule runs (`run`): `work` does that for one device. A
graph of the same structure is scheduled once: a request knows the key of its graphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from weft.engine.bindings import MAY_BIND, may_bind
from weft.engine.buffer_nodes import hand_over, line_of, new_buffer
from weft.engine.buffers import buffer_of
from weft.engine.contents import copy_contents
from weft.engine.devices import default_device, device, is_file
from weft.engine.disk import brought, write_files, written_file
from weft.engine.interpret import interpret
from weft.engine.request import Request
from weft.engine.shards import Wanted, may_hold_parts, read_again, realize_parts
from weft.engine.tape import Copy, NotTapedError, Tape
from weft.engine.watch.record import record_realize
from weft.engine.work import body_of, run_body, run_known
from weft.ir.build import sink
from weft.ir.layouts import has_layout
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.views import version_of
from weft.ir.walk import substitute, topological
from weft.rewrite.trace_file import STATE, current
from weft.runtime.disk.device import computes_nothing
from weft.support.errors import DeviceError
from weft.support.setting import scope


def realize(
    request: Request, pending: Sequence[UOp] = (), tape: Tape | None = None
) -> dict[UOp, UOp]:
    """Compute the roots; the BUFFER node of each root and of each version written on the way.

    `pending` are graphs that stay lazy: what they read must survive the writes that happen now.
    With a `tape` nothing runs: it says what would be done to memory.
    """
    if STATE.trace is not None:
        record_realize(current())
    if may_hold_parts(request.ops) and any(map(has_layout, request.nodes)):
        return realize_parts(request, pending, partial(compute, device=request.device, tape=tape))
    name = request.try_device()
    if name is not None:
        return _run_on(name, request, pending, tape)
    made: dict[UOp, UOp] = {}
    roots = request.roots
    found = compute([(root, None) for root in roots], pending, made, request.device, tape)
    made.update(zip(roots, found, strict=True))
    return made


def compute(
    wanted: Sequence[Wanted],
    pending: Sequence[UOp],
    made: dict[UOp, UOp],
    device: str | None = None,
    tape: Tape | None = None,
) -> list[UOp]:
    """Compute values of one device each; what else becomes memory on the way goes to `made`.

    Without the name of a device, a value is computed where its memory is, or on `device`.
    """
    roots = [graph for graph, _ in wanted]
    made.update(write_files(roots, pending, lambda x: realize(Request([x], "CPU"))[x]))
    is_changed = bool(made) or any(root.ops >> Op.COPY & 1 for root in roots)
    versions = [n for n in topological(*roots) if n.op == Op.AFTER] if is_changed else []
    done = list(substitute(sink(*roots, *versions), made).src)
    done = carry_out_copies(done, pending, made, device, tape)
    if made:
        pending = substitute(sink(*pending), made).src
    graphs, done_versions = done[: len(roots)], done[len(roots) :]
    by_device: dict[str, list[UOp]] = {}
    found_names = devices_of(graphs, device)
    names = [name or own for (_, name), own in zip(wanted, found_names, strict=True)]
    for name, graph in zip(names, graphs, strict=True):
        if graph.op != Op.BUFFER:
            by_device.setdefault(name, []).append(graph)
    found: dict[tuple[str, UOp], UOp] = {}
    for name, several in by_device.items():
        request = Request(list(dict.fromkeys(several)), name)
        computed = _realize_on(name, request, pending, tape)
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


def devices_of(graphs: Sequence[UOp], device: str | None = None) -> list[str]:
    """The device of each graph: that of its memory, or else this one, or the default device."""
    found: dict[UOp, str | None] = {}
    for node in topological(*graphs):
        name: str | None = node.arg[2] if node.op == Op.BUFFER else None
        for source in node.src:
            other = found[source]
            if name is not None and other is not None and other != name:
                raise DeviceError(
                    f"operands are on different devices ({', '.join(sorted((name, other)))})",
                    rule="one operation runs on one device",
                    fix="move one of them: x.to(y.device)",
                )
            name = name or other
        found[node] = name
    return [found[graph] or device or default_device() for graph in graphs]


def carry_out_copies(
    roots: list[UOp],
    pending: Sequence[UOp],
    made: dict[UOp, UOp],
    device: str | None,
    tape: Tape | None,
) -> list[UOp]:
    """The graphs with every COPY carried out; its source is computed on its own device first.

    Copies whose sources hold no others go together, so that a device computes all of them in one
    program.
    """
    while any(root.ops >> Op.COPY & 1 for root in roots):
        copies = [n for n in topological(*roots) if n.op == Op.COPY]
        ready = [n for n in copies if not n.src[0].ops >> Op.COPY & 1]
        by_device: dict[str, list[UOp]] = {}
        names = devices_of([n.src[0] for n in ready], device)
        for copy, name in zip(ready, names, strict=True):
            # A value without memory that goes to a file is computed by the host.
            is_lost = is_file(name) and not copy.src[0].ops >> Op.BUFFER & 1
            by_device.setdefault("CPU" if is_lost else name, []).append(copy)
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
            request = Request(sources, name)
            done.update(_realize_on(name, request, [*roots, *pending], tape))
    for copy in ready:
        source = done.get(copy.src[0], copy.src[0])
        if is_file(copy.arg):
            done[copy] = written_file(source, copy.arg)
            continue
        done[copy] = new_buffer(source.dtype, shape_of(source), copy.arg)
        if tape is None:
            copy_contents(buffer_of(source), buffer_of(done[copy]), source)
        else:
            tape.actions.append(Copy(buffer_of(source), buffer_of(done[copy])))
    for source in {copy.src[0] for copy in ready}:
        # What needs no memory is computed anywhere, and a view is also memory that is written.
        if not source.ops >> Op.BUFFER & 1 or _is_view(source):
            done.pop(source, None)
    return done


def _is_view(node: UOp) -> bool:
    """Whether a node is memory, seen through movement ops or indices."""
    base = version_of(node)
    return base is not node and base.op in (Op.BUFFER, Op.AFTER)


def _realize_on(
    name: str, request: Request, pending: Sequence[UOp], tape: Tape | None
) -> dict[UOp, UOp]:
    """Compute graphs of one device, unless that is a file."""
    if is_file(name):
        raise computes_nothing()
    return _run_on(name, request, pending, tape)


def _run_on(
    name: str, request: Request, pending: Sequence[UOp], tape: Tape | None
) -> dict[UOp, UOp]:
    """Compute graphs of one device that computes."""
    if device(name).graphs is not None:
        if tape is not None:
            raise NotTapedError
        versions = [node for node in request.nodes if node.op == Op.AFTER]
        wanted = list(dict.fromkeys([*versions, *request.roots]))
        return interpret(name, wanted, request.nodes)
    last = request.overwritten.last
    values = request.roots
    if last:
        kept = request.overwritten.read_by(pending)
        done = set(last.values())
        values = [n for n in dict.fromkeys([*values, *kept]) if n not in done]
        for memory in last:
            buffer_of(memory).prepare_write()
    may_hold = request.ops & MAY_BIND and may_bind(request.nodes, request.ops)
    if tape is None and not may_hold and scope.get()["CHECK"] != "levels":
        made = run_known(name, request, values, last)
        if not last:
            return made
    else:
        made = {node: new_buffer(node.dtype, shape_of(node), name) for node in values}
        for node, memory in made.items():
            memory.line = line_of(node)
        run_body(name, body_of(last, made), list(last), tape)
    for memory, version in last.items():
        made[version] = written = hand_over(memory)
        written.line = written.line or version.line
    return made
