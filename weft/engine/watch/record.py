"""What the engine says in a trace: schedules, kernels, launches and copies."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weft.engine.watch.label import label_of
from weft.engine.watch.show import peaks_of
from weft.ir.program import Program
from weft.ir.shapes import shape_of
from weft.ir.text import dump
from weft.ir.uop import UOp
from weft.ir.walk import try_line
from weft.rewrite.trace_file import TraceFile
from weft.runtime.device import Device
from weft.support.source_line import user_line

if TYPE_CHECKING:
    from weft.codegen.opts.table import Opt
    from weft.engine.run import PlannedLaunch
    from weft.schedule.decision import Decision
    from weft.schedule.schedule import Schedule


def record_realize(trace: TraceFile | None) -> None:
    """That somebody asked for values now, and where."""
    if trace is not None:
        line = trace.line(user_line(skip=1))
        trace.write("realize", id=trace.number(), at=trace.now(), line=line)


def record_schedule(trace: TraceFile, device: Device, body: UOp, schedule: Schedule) -> None:
    """A graph and its kernels, with the decisions that led to them."""
    kernels: list[dict[str, Any]] = []
    for call in schedule.kernels.src:
        fields: dict[str, Any] = {"name": _name(call.arg), "body": trace.graph(call.arg)}
        fields["memory"] = [part.arg[0] for part in call.src]
        if call.line is not None:
            fields["line"] = trace.line(call.line)
        kernels.append(fields)
    temporaries = {
        str(part.arg[0]): f"{part.dtype.name}[{','.join(map(str, shape_of(part)))}]"
        for part in schedule.temporaries
    }
    trace.write(
        "schedule",
        id=trace.number(),
        phase=trace.thread.phase,
        device=device.name,
        at=trace.now(),
        graph=trace.graph(body),
        kernels=kernels,
        decisions=[_decision(trace, decision) for decision in schedule.log],
        temporaries=temporaries,
        arena=schedule.plan.size,
    )


def _decision(trace: TraceFile, decision: Decision) -> dict[str, Any]:
    """A value, what was decided of it, and the numbers (microseconds) or the refusal."""
    fields: dict[str, Any] = {
        "text": str(decision),
        "node": trace.graph(decision.node),
        "to": "memory" if decision.is_stored else "inline",
    }
    line = try_line(decision.node)
    if line is not None:
        fields["line"] = trace.line(line)
    if decision.reason:
        return {**fields, "refused": decision.reason}
    fields |= {"uses": decision.uses, "evaluations": decision.evaluations, "size": decision.size}
    costs = {"recompute": decision.recompute, "memory": decision.memory}
    return {**fields, **{name: round(cost / 1e3, 3) for name, cost in costs.items()}}


def _name(body: UOp) -> str:
    return str(body.arg[0])


def record_kernel(
    trace: TraceFile,
    device: Device,
    program: Program,
    kernel: UOp | None = None,
    opts: Sequence[Opt] = (),
    label: str = "",
) -> int:
    """A program, once; launches refer to it by its number, which is returned."""
    key = _key(device, program)
    if key in trace.kernels:
        return trace.kernels[key]
    trace.kernels[key] = number = trace.number()
    cost = program.estimate
    peaks = peaks_of(device, cost)
    fields: dict[str, Any] = {}
    if kernel is not None:
        fields["phase"], fields["opts"] = trace.thread.phase, list(map(str, opts))
        fields["refused"], trace.thread.refused = trace.thread.refused, []
        fields["body"] = trace.graph(kernel)
        fields["text"] = dump(kernel) if trace.has_room_for_graphs else ""
        label = label_of(kernel)
    trace.write(
        "kernel",
        id=number,
        name=program.name,
        label=label,
        device=device.name,
        target=program.target,
        groups=[str(size) for size in program.groups],
        threads=list(program.threads),
        operations=cost.operations,
        bytes=cost.moved,
        peaks={"operations": peaks.operations, "bytes": peaks.bytes_moved},
        source=program.source if trace.has_graphs else "",
        **fields,
    )
    return number


def _key(device: Device, program: Program) -> tuple[object, ...]:
    return device.name, program.name, program.source or program.binary


def record_compiled(
    trace: TraceFile, device: Device, program: Program, began: float, step: str
) -> None:
    """The time of a step (render, compile or load) of a program; `began` is of perf_counter."""
    start, number = trace.at(began), trace.kernels.get(_key(device, program))
    spent = round(trace.now() - start, 1)
    trace.write("compiled", kernel=number, step=step, start=start, us=spent)


def record_launch(trace: TraceFile, device: Device, step: PlannedLaunch, seconds: float) -> None:
    """A run of a program that has just ended."""
    end = time.perf_counter()
    trace.write_launches([_opening(trace, device, step)], (end - seconds, end))
    trace.spent += time.perf_counter() - end


def record_launches(
    trace: TraceFile, device: Device, steps: Sequence[PlannedLaunch], clock: Sequence[float]
) -> None:
    """The kernels of a list: the clock (`perf_counter`) before the first and after each."""
    key = id(steps), _stream(trace, device)
    known = trace.lists.get(key)
    if known is None:  # the list is kept, so that its id stays its own
        known = trace.lists[key] = (steps, [_opening(trace, device, step) for step in steps])
    trace.write_launches(known[1], clock)


def _opening(trace: TraceFile, device: Device, step: PlannedLaunch) -> str:
    """The text of a launch up to its times: the same for every run, and made once."""
    number = record_kernel(trace, device, step.loaded.program, label=step.label)
    line = "" if step.line is None else f'"line":{trace.line(step.line)},'
    where = f'"device":{json.dumps(device.name)},"stream":{_stream(trace, device)}'
    return f'{{"kind":"launch","kernel":{number},{where},{line}'


def _stream(trace: TraceFile, device: Device) -> int:
    """A device with a queue has one stream; on others each thread runs its own kernels."""
    return 0 if device.timer is not None else trace.thread_number()


def _short(name: str) -> str:
    """The name of a function without the functions that it stands in."""
    return name.rpartition("<locals>.")[2]


def record_traced(trace: TraceFile, name: str, start: float) -> None:
    """A function that was run to see what it does, from `start` (`perf_counter`) to now."""
    trace.write_later("traced", name=_short(name), start=trace.at(start), end=trace.now())


def record_call(trace: TraceFile, name: str, start: float, spent: float) -> None:
    """A call of a jitted function that ends now.

    `start` is of `perf_counter`, `spent` what the trace itself had taken by then.
    """
    end = time.perf_counter()
    line = trace.line(user_line(skip=3))
    own = round((trace.spent - spent) * 1e6, 1)
    trace.write_later(
        "call", name=_short(name), start=trace.at(start), end=trace.at(end), own=own, line=line
    )
    trace.spent += time.perf_counter() - end


def record_copy(trace: TraceFile, source: Device, target: Device, size: int, start: float) -> None:
    """Bytes that went from one device to another, or stayed on one."""
    target.synchronize()
    names = {"source": source.name, "target": target.name}
    stream = _stream(trace, target)
    trace.write("copy", **names, stream=stream, bytes=size, start=start, end=trace.now())
