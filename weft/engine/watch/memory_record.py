"""What a trace says of memory: who took how much and who gave it back, with the user's lines.

The first records of a trace list what was there before it, so that those alive at any time add up.
Memory that nobody can name, the temporaries of jitted functions, is one record, `REST`; what is
given back under a number that was never taken comes off it.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from weft.engine.counters import GlobalCounters
from weft.ir.shapes import shape_of
from weft.ir.sizes import most
from weft.rewrite.trace_file import TraceFile, current
from weft.support.source_line import SourceLine, user_line

if TYPE_CHECKING:
    from weft.engine.buffers import Buffer

_MOST_PARTS: Final = 256
REST: Final = -1  # what was there before the trace, and belongs to no tensor


def describe_buffer(memory: Buffer) -> tuple[str, SourceLine | None]:
    """What some memory holds in few words, and the line that it comes from."""
    end = getattr(memory, "end", None)
    node = None if end is None else end()
    if node is None:
        return (memory.owner.title if memory.owner is not None else "memory"), None
    sizes = ", ".join(map(str, map(most, shape_of(node))))
    return f"{node.dtype.name} [{sizes}]", node.line


def record_memory(memory: Buffer, used: int, is_taken: bool) -> None:
    """Note in the trace, if there is one, that memory was taken or given back."""
    trace = current()
    if trace is None:
        return
    start = time.perf_counter()
    if not trace.knows_memory:
        with _no_collection():
            _record_known(trace, memory, used, is_taken)
    fields = {"free": id(memory), "bytes": memory.size}
    if is_taken:
        fields = _fields(trace, memory, True)
    trace.write_later("memory", device=memory.device.name, at=trace.now(), used=used, **fields)
    trace.spent += time.perf_counter() - start


def _fields(trace: TraceFile, memory: Buffer, is_new: bool) -> dict[str, Any]:
    what, line = describe_buffer(memory)
    if line is None and is_new:
        line = user_line(skip=3)
    fields: dict[str, Any] = {"take": id(memory), "bytes": memory.size, "what": what}
    if line is not None:
        fields["line"] = trace.line(line)
    if memory.owner is not None:
        parts = sorted(memory.owner.parts_of_arena(), key=lambda part: -part[0])[:_MOST_PARTS]
        fields["parts"] = [
            [size, kind, None if origin is None else trace.line(origin)]
            for size, kind, origin in parts
        ]
    return fields


@contextmanager
def _no_collection() -> Iterator[None]:
    """Nothing is given back in this scope, so that a list of all memory is of one moment."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _record_known(trace: TraceFile, new: Buffer, used: int, is_taken: bool) -> None:
    """The memory that was there when the trace began."""
    from weft.engine.buffers import BUFFERS

    trace.knows_memory = True
    totals: dict[str, int] = {}
    change = new.size if is_taken else -new.size
    before = {**GlobalCounters.mem_used_by, new.device.name: used - change}
    for memory in list(BUFFERS.values()):
        if memory is new or not memory.has_contents or not memory.size or memory.keep is not None:
            continue
        name = memory.device.name
        totals[name] = totals.get(name, 0) + memory.size
        fields = _fields(trace, memory, False)
        trace.write_later("memory", device=name, at=0.0, used=totals[name], **fields)
    for name, size in before.items():  # the rest is held by jitted functions
        if (rest := size - totals.get(name, 0)) > 0:
            fields = {"take": REST, "bytes": rest, "what": "temporaries of jitted functions"}
            trace.write_later("memory", device=name, at=0.0, used=size, **fields)
