"""The trace: one file of what happened in a process, a JSON object on each line.

`VIZ=1` starts one at the first thing that happens; `recording(path)` is one for a scope. Where
neither is on, `current()` is None, and nobody does any work for a trace. The records, by `kind`:

    trace     the first line: version, program, time
    line      a line of the user's program: file, number, text, function, module of the model
    node      a node of a graph, once: op, dtype, sources, arg, shape, bounds, line
    rule      a rule that fired: name and set
    phase     a run of a phase: the graph it was given, and its passes with their rewrites
    fusion    the nodes of a tensor graph that became one kernel each
    schedule  what a graph became: the kernels in order, decisions with their costs, temporaries
    kernel    a program: source, opts and refusals, cost, the machine's peaks
    compiled  a step on the way to a program that runs: render, compile or load, with its time
    realize   one request for values: when, and who asked
    traced    a function that jit ran to see what it does: from when to when
    call      a call of a jitted function: from when to when; `own` is the time of the trace in it
    launch    a kernel that ran: from when to when, on which device and stream
    copy      bytes from one device to another
    collective  what devices exchange for a value: its name, the devices, the bytes of each
    memory    bytes in use on a device, after a tensor or temporaries took or gave back some
    check     what a check found: a value that is not a number, a pass that is wrong
    end       the file is full: what was left out

Times are microseconds since the first line. Graphs are nodes by number, so that graphs of
successive passes share what did not change. A reader passes over kinds and fields that it does not
know; `VERSION` changes where it would misread what it knows.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, Final

from weft.ir.bounds import UNBOUNDED, bounds
from weft.ir.dtypes import dtypes
from weft.ir.ops import INFO, MOVEMENT, Op, mask_of, name
from weft.ir.shapes import shape_of
from weft.ir.uop import Arg, UOp
from weft.ir.walk import topological
from weft.rewrite.module_path import module_path
from weft.support.errors import InternalError, UsageError
from weft.support.settings import Context, settings
from weft.support.source_line import MODULES, SourceLine

VERSION: Final = 4
# Past this share of the limit a trace has no rewrites and no graphs any more, only what ran.
_SHARE_OF_GRAPHS: Final = 0.8
_MEGABYTE: Final = 1 << 20
# Launches that wait to be written as text: a step that is measured does not pay for it.
_MOST_WAITING: Final = 20_000
_LONGEST_ARG: Final = 200
_MOST_REFUSALS: Final = 200
_TENSOR_OPS: Final = mask_of(*MOVEMENT)
_LOOPS: Final = mask_of(Op.RANGE, Op.LOAD, Op.KERNEL, Op.LINEAR)


class Here(threading.local):
    """What a thread has said last: the number of a phase, and the opts that were refused since."""

    def __init__(self) -> None:
        self.phase: int | None = None
        self.refused: list[str] = []


class TraceFile:
    """A file that is being written. Threads share it."""

    def __init__(self, path: str, limit: int, graphs: bool = True) -> None:
        self.path = path
        self.has_graphs = graphs  # else it is of times alone, and costs little
        # It stays open until the end of the program or of a scope.
        self._file: IO[str] = open(path, "w", _MEGABYTE, encoding="utf-8")  # noqa: SIM115
        self._lock = threading.RLock()
        self._limit = limit
        self._size = 0
        self._left_out: dict[str, int] = {}
        self._numbers: dict[UOp, int] = {}
        self._lines: dict[tuple[str, int, str], int] = {}
        # The same by what is cheap to ask; the line is kept, so that its key stays its own.
        self._locations: dict[tuple[object, ...], tuple[SourceLine, int]] = {}
        self._names: dict[tuple[str, str], int] = {}
        self._next = 0
        self.kernels: dict[tuple[object, ...], int] = {}  # the numbers of those written
        # What the records of a list of kernels begin with, by the id of the list, which is kept,
        # and the stream.
        self.lists: dict[tuple[int, int], tuple[object, list[str]]] = {}
        self._waiting: list[tuple[list[str], Sequence[float]] | dict[str, Any]] = []
        self._waiting_rows = 0
        self._threads: dict[int, int] = {}
        self.spent = 0.0  # seconds that records of runs and of memory took, for profiles
        self._start = time.perf_counter()
        self.process = os.getpid()
        self.knows_memory = False  # what was there before it is written at the first change
        self.thread = Here()
        if graphs:
            MODULES.append(module_path)
        self.write(
            "trace",
            version=VERSION,
            program=" ".join(sys.argv),
            python=sys.version.split()[0],
            started=time.time(),
        )

    def now(self) -> float:
        """Microseconds since the trace began."""
        return self.at(time.perf_counter())

    def at(self, seconds: float) -> float:
        """A time of `time.perf_counter` on the clock of this trace."""
        return round((seconds - self._start) * 1e6, 1)

    def number(self) -> int:
        """A number for a record that others refer to."""
        with self._lock:
            self._next += 1
            return self._next

    def thread_number(self) -> int:
        """Which thread of the program this is, by when it was first seen."""
        return self._threads.setdefault(threading.get_ident(), len(self._threads))

    @property
    def has_room_for_graphs(self) -> bool:
        return self.has_graphs and self._size < _SHARE_OF_GRAPHS * self._limit

    def write(self, kind: str, **fields: Any) -> None:
        """Add a record, while there is room."""
        text = json.dumps({"kind": kind, **fields}, separators=(",", ":"), default=str) + "\n"
        self.write_text(kind, text)

    def write_text(self, kind: str, text: str, count: int = 1) -> None:
        """Add records that are text already, while there is room."""
        with self._lock:
            if self._file.closed:
                return
            if self._size + len(text) > self._limit:
                self._left_out[kind] = self._left_out.get(kind, 0) + count
                return
            self._size += len(text)
            self._file.write(text)

    def write_launches(self, openings: list[str], clock: Sequence[float]) -> None:
        """Add launches that follow each other; they become text later.

        `openings` is how the text of each begins, `clock` has `time.perf_counter` before the first
        and after each.
        """
        self._wait((openings, clock), len(openings))

    def write_later(self, kind: str, **fields: Any) -> None:
        """Add a record that becomes text later, in the order of all that do."""
        self._wait({"kind": kind, **fields}, 1)

    def _wait(self, record: tuple[list[str], Sequence[float]] | dict[str, Any], rows: int) -> None:
        with self._lock:
            self._waiting.append(record)
            self._waiting_rows += rows
            if self._waiting_rows > _MOST_WAITING:
                self._write_waiting()

    def _write_waiting(self) -> None:
        waiting, self._waiting, self._waiting_rows = self._waiting, [], 0
        for record in waiting:
            if isinstance(record, dict):
                self.write(**record)
                continue
            openings, clock = record
            times = [self.at(moment) for moment in clock]
            rows = [
                f'{opening}"start":{start},"end":{end}}}\n'
                for opening, start, end in zip(openings, times[:-1], times[1:], strict=True)
            ]
            self.write_text("launch", "".join(rows), len(rows))

    def graph(self, root: UOp) -> int | None:
        """The number of a node; it and all below it are written where they are new."""
        if root.op == Op.SINK and root.ops & _TENSOR_OPS:
            shape_of(root)  # of all below it; kernels have none
        if not self.has_room_for_graphs:
            if not self.has_graphs:
                return None
            self._left_out["graph"] = self._left_out.get("graph", 0) + 1
            return None
        with self._lock:
            if root not in self._numbers:
                known = self._numbers
                for node in topological(root, enter=lambda node: node not in known):
                    if node not in known:
                        self._write_node(node)
            return self._numbers[root]

    def _write_node(self, node: UOp) -> None:
        # The table holds the node, so that its number stays its own.
        self._numbers[node] = number = self.number()
        fields: dict[str, Any] = {"id": number, "op": name(node.op)}
        if node.dtype.name != "void":
            fields["dtype"] = node.dtype.name
        if node.src:
            fields["src"] = [self._numbers[source] for source in node.src]
        if node.op == Op.CALL:
            fields["body"] = self.graph(node.arg)
        elif (arg := _arg_text(node)) != "":
            fields["arg"] = arg
        if shape := _shape(node):
            fields["shape"] = shape
        if limits := _limits(node):
            fields["bounds"] = limits
        if node.line is not None:
            fields["line"] = self.line(node.line)
        self.write("node", **fields)

    def line(self, line: SourceLine) -> int:
        """The number of a line of the user's program."""
        known = self._locations.get(line.key)
        if known is not None:
            return known[1]
        file, row, module = line.file, line.line, line.module
        with self._lock:
            number = self._lines.get((file, row, module))
            if number is None:
                number = self._lines[file, row, module] = self.number()
                fields = {"file": file, "row": row, "text": line.text, "function": line.function}
                self.write("line", id=number, **fields, **({"module": module} if module else {}))
            self._locations[line.key] = line, number
        return number

    def rule(self, rules: str, rule: str) -> int:
        """The number of a rule."""
        with self._lock:
            number = self._names.get((rules, rule))
            if number is None:
                number = self._names[rules, rule] = self.number()
                self.write("rule", id=number, set=rules, name=rule)
        return number

    def close(self) -> None:
        with self._lock:
            if not self._file.closed:
                self._write_waiting()
                if self._left_out:
                    self._limit += _MEGABYTE
                    self.write("end", left_out=self._left_out)
                self._file.close()
                if self.has_graphs and MODULES:
                    MODULES.pop()


def _arg_text(node: UOp) -> str:
    """What beside its sources makes a node what it is, in few words."""
    arg = node.arg
    if arg is None:
        return ""
    if node.op in (Op.REDUCE, Op.SCAN, Op.SCATTER) and isinstance(arg, tuple) and arg:
        return " ".join([_op_name(arg[0]), *map(_short, arg[1:])])
    return _short(arg)


def _op_name(op: Arg) -> str:
    return INFO[op].name if isinstance(op, int) and 0 <= op < len(INFO) else _short(op)


def _short(arg: Arg) -> str:
    if isinstance(arg, tuple):
        return f"({', '.join(map(_short, arg))})"
    text = str(getattr(arg, "name", arg))
    return text if len(text) <= _LONGEST_ARG else text[:_LONGEST_ARG] + "…"


def _shape(node: UOp) -> str:
    """The shape of a value, where it has one: below tensors nodes have none."""
    shape = node.known_shape
    if shape is None and node.dtype.name != "void" and not node.ops & _LOOPS:
        try:
            shape = shape_of(node)
        except (InternalError, UsageError):  # a part of a kernel
            return ""
    return "" if not shape else ",".join(map(str, shape))


def _limits(node: UOp) -> str:
    """The interval of an index, where it is known; constants say it themselves."""
    if node.op == Op.CONST:
        return ""
    found = bounds(node) if node.dtype is dtypes.index else node.interval
    return "" if found is None or found == UNBOUNDED else f"{found[0]} to {found[1]}"


class State:
    """The trace of this process; None until there is one."""

    trace: TraceFile | None = None


STATE: Final = State()


def current() -> TraceFile | None:
    """The trace that is being written, or None."""
    if not settings.VIZ:
        return None
    trace = STATE.trace
    if trace is None or trace.process != os.getpid():
        trace = _start()
    return trace


def wants_graphs() -> bool:
    """Whether a trace is written that holds every graph and rewrite."""
    trace = current()
    return trace is not None and trace.has_graphs


def note_refusal(refusal: Exception) -> None:
    """Remember an opt that was refused for the record of the kernel."""
    trace = current()
    if trace is not None and len(trace.thread.refused) < _MOST_REFUSALS:
        trace.thread.refused.append(str(refusal).splitlines()[0])


def _start() -> TraceFile:
    """The trace of this process, in the folder where it was started."""
    from tempfile import mkstemp  # slow to import, and not needed without VIZ

    # A name that nobody can foresee, and no link: the folder may be one that others write to.
    handle, path = mkstemp(".jsonl", f"weft-trace-{os.getpid()}-", os.getcwd())
    os.close(handle)
    STATE.trace = trace = TraceFile(path, settings.VIZ_MB * _MEGABYTE)
    atexit.register(_say, trace)
    return trace


def _say(trace: TraceFile) -> None:
    trace.close()
    if trace.process == os.getpid():
        print(f"VIZ: weft viz {os.path.relpath(trace.path)}", file=sys.stderr)


@contextmanager
def recording(path: str | os.PathLike[str], graphs: bool = True) -> Iterator[TraceFile]:
    """Write what happens in this scope to a file; without `graphs`, times and memory alone."""
    before = STATE.trace
    trace = TraceFile(os.fspath(path), settings.VIZ_MB * _MEGABYTE, graphs)
    STATE.trace = trace
    try:
        with Context(VIZ=1):
            yield trace
    finally:
        STATE.trace = before
        trace.close()
