"""The work of one device: a graph over its memory, scheduled once for each structure, and run.

`realize` comes here with graphs whose copies and files have been seen to. `run_known` finds work
of the same structure by the key of its request; `run_body` runs graphs with values of variables,
writes them to a tape, or checks them. `prepare` has the schedule of a graph over parameters.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from weft.engine.bindings import Variables, take_bindings
from weft.engine.buffer_nodes import BufferKind, line_of
from weft.engine.buffers import BUFFERS, buffer_of
from weft.engine.compile import program_key
from weft.engine.devices import device
from weft.engine.request import Request
from weft.engine.run import Prepared
from weft.engine.stored.schedule import put_stored, try_stored
from weft.engine.tape import NotTapedError, Run, Tape
from weft.engine.watch.record import record_schedule
from weft.ir.build import sink, store
from weft.ir.collector import CollectorPaused
from weft.ir.memory_parameters import over_parameters
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.text import dump
from weft.ir.uop import UOp
from weft.ir.walk import try_line
from weft.rewrite.trace_file import current
from weft.runtime.device import Device
from weft.support.bounded_cache import BoundedCache
from weft.support.message import bytes_text
from weft.support.settings import cache_key, settings
from weft.support.source_line import user_line

if TYPE_CHECKING:
    from weft.schedule.schedule import Schedule

_PREPARED: Final[BoundedCache[tuple[UOp, str, object], Prepared]] = BoundedCache(512)
_WORK: Final[BoundedCache[tuple[Hashable, ...], Work]] = BoundedCache(512)
_NO_VALUES: Final[Variables] = {}


class Work(NamedTuple):
    """What requests of one key have in common: a schedule, and the memory that it runs on.

    `order` has, for each slot, its position among the memory of a request and its outputs.
    """

    prepared: Prepared
    outputs: tuple[BufferKind, ...]
    order: tuple[int, ...]


def run_known(
    name: str, request: Request, values: Sequence[UOp], last: dict[UOp, UOp]
) -> dict[UOp, UOp]:
    """Run a graph without bound variables; one of the same structure is looked up by its key."""
    written = request.names(last.values()) if last else ()
    key = (name, request.key, written, request.names(values), cache_key())
    work = _WORK.get(key)
    if work is None:
        work = _WORK[key] = _make_work(name, request, values, last)
    made: dict[UOp, UOp] = {}
    memory = list(map(buffer_of, request.memory))
    for node, kind in zip(values, work.outputs, strict=True):
        made[node] = output = kind.new()
        output.line = node.line or line_of(node)
        memory.append(BUFFERS[output.arg[0]])
    work.prepared.run(list(map(memory.__getitem__, work.order)), _NO_VALUES)
    return made


def _make_work(name: str, request: Request, values: Sequence[UOp], last: dict[UOp, UOp]) -> Work:
    kinds = [BufferKind(node.dtype, shape_of(node), name) for node in values]
    outputs = [kind.without_memory() for kind in kinds]
    graph = body_of(last, dict(zip(values, outputs, strict=True)))
    memory, (body,) = over_parameters([graph], Op.BUFFER)
    positions = {node: position for position, node in enumerate([*request.memory, *outputs])}
    order = tuple([positions[node] for node in memory])
    return Work(prepare(body, name), tuple(kinds), order)


def body_of(last: dict[UOp, UOp], outputs: dict[UOp, UOp]) -> UOp:
    """The last versions of memory, and stores of values to memory of their own."""
    return sink(*last.values(), *(store(memory, node) for node, memory in outputs.items()))


def run_body(name: str, body: UOp, written: Sequence[UOp], tape: Tape | None) -> None:
    """Schedule a graph over buffers and run it, or write it to a tape."""
    memory, (parametric,) = over_parameters([body], Op.BUFFER)
    unbound, variables = take_bindings(parametric)
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
    from weft.engine.checks.levels import LevelCheck

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
        found = _PREPARED[key] = try_stored(body, on) or _scheduled(body, on)
    return found


def _scheduled(body: UOp, on: Device) -> Prepared:
    with CollectorPaused():  # once for all passes: each end of a pause looks at all that is new
        return _made(body, on)


def _made(body: UOp, on: Device) -> Prepared:
    # Here, because a process whose schedules are all on disk needs none of it.
    from weft.schedule.schedule import make_schedule

    schedule = make_schedule(body, on.target)
    if settings.DEBUG >= 1:
        _print_schedule(on.name, schedule)
    trace = current()
    if trace is not None:
        record_schedule(trace, on, body, schedule)
    made = Prepared.of(schedule, on, body)
    put_stored(body, made, [program_key(call.arg, on) for call in schedule.kernels.src])
    if settings.DEBUG >= 4:
        for step in made.steps:
            print(step.loaded.program.source)
    return made


def _print_schedule(name: str, schedule: Schedule) -> None:
    count, size = len(schedule.kernels.src), schedule.plan.size
    what = "1 kernel" if count == 1 else f"{count} kernels"
    where = user_line()
    location = f"  {where.file}:{where.line}" if where.file else ""
    print(f"schedule on {name}: {what}, {bytes_text(size)} of temporaries{location}")
    if settings.DEBUG >= 5:
        for report in schedule.reports:
            print(report)
    if settings.DEBUG >= 3:
        for decision in schedule.log:
            line = try_line(decision.node)
            location = f"  {line.file}:{line.line}" if line is not None else ""
            print(f"  {decision}{location}")
        for call in schedule.kernels.src:
            print(dump(call.arg))
