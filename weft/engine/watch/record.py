"""What the engine says in a trace: schedules, kernels, launches and copies."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weft.engine.watch.label import label_of
from weft.ir.program import Program
from weft.ir.shapes import shape_of
from weft.ir.text import dump
from weft.ir.uop import UOp
from weft.rewrite.trace_file import TraceFile
from weft.runtime.device import Device
from weft.support.source_line import user_line

if TYPE_CHECKING:
    from weft.codegen.opts.table import Opt
    from weft.engine.run import PlannedLaunch
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
        decisions=list(map(str, schedule.log)),
        temporaries=temporaries,
        arena=schedule.plan.size,
    )


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
    cost, peaks = program.estimate, device.target.peaks
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
        bytes=cost.bytes_read + cost.bytes_written,
        peaks={"operations": peaks.operations, "bytes": peaks.bytes_moved},
        source=program.source if trace.has_graphs else "",
        **fields,
    )
    return number


def _key(device: Device, program: Program) -> tuple[object, ...]:
    return device.name, program.name, program.source or program.binary


def record_compiled(trace: TraceFile, device: Device, program: Program, began: float) -> None:
    """The time that the compiler of a device took for a program; `began` is of perf_counter."""
    start, number = trace.at(began), trace.kernels.get(_key(device, program))
    trace.write("compiled", kernel=number, start=start, us=round(trace.now() - start, 1))


def record_launch(trace: TraceFile, device: Device, step: PlannedLaunch, seconds: float) -> None:
    """A run of a program that has just ended."""
    end = trace.now()
    opening = _opening(trace, device, step)
    trace.write_text("launch", f'{opening}"start":{round(end - seconds * 1e6, 1)},"end":{end}}}\n')


def record_launches(
    trace: TraceFile, device: Device, steps: Sequence[PlannedLaunch], clock: Sequence[float]
) -> None:
    """The kernels of a list: the clock (`perf_counter`) before the first and after each."""
    key = id(steps)
    known = trace.lists.get(key)
    if known is None:  # the list is kept, so that its id stays its own
        known = trace.lists[key] = (steps, [_opening(trace, device, step) for step in steps])
    times = [trace.at(at) for at in clock]
    rows = [
        f'{opening}"start":{start},"end":{end}}}\n'
        for opening, start, end in zip(known[1], times[:-1], times[1:], strict=True)
    ]
    trace.write_text("launch", "".join(rows), len(rows))


def _opening(trace: TraceFile, device: Device, step: PlannedLaunch) -> str:
    """The text of a launch up to its times: the same for every run, and made once."""
    number = record_kernel(trace, device, step.loaded.program, label=step.label)
    line = "" if step.line is None else f'"line":{trace.line(step.line)},'
    return f'{{"kind":"launch","kernel":{number},"device":{json.dumps(device.name)},{line}'


def record_copy(trace: TraceFile, source: Device, target: Device, size: int, start: float) -> None:
    """Bytes that went from one device to another, or stayed on one."""
    target.synchronize()
    names = {"source": source.name, "target": target.name}
    trace.write("copy", **names, bytes=size, start=start, end=trace.now())
