"""Where the time of a program went: kernels, compiling and Python, from a trace.

    with weft.profile() as found:
        train_step(x, y)
    print(found)

`weft profile program.py` prints the same for a whole program.
"""

from __future__ import annotations

import itertools
import os
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from weft.engine.watch.memory_record import REST
from weft.rewrite.trace_file import recording
from weft.support.message import bytes_text
from weft.viz.page import read_records

Span = tuple[float, float]  # start and end
_ROWS: Final = 20
_LINES: Final = 10


@dataclass
class KernelRow:
    """The runs of one kernel."""

    name: str
    label: str
    device: str
    operations: int
    moved: int
    peaks: dict[str, float]
    line: str = ""
    us: list[float] = field(default_factory=list)

    @property
    def total(self) -> float:
        return sum(self.us)

    @property
    def is_dry(self) -> bool:
        """Whether it was counted and did not run."""
        return not any(self.peaks.values())

    @property
    def is_cached(self) -> bool:
        """Whether the best run moved more than memory can: its operands were in a cache."""
        return self._moving > 1.0

    @property
    def share(self) -> float:
        """How much of what the machine can do the best run reached, in what bounds it.

        Where operands are in a cache, memory bounds nothing.
        """
        return self._computing if self.is_cached else max(self._computing, self._moving)

    @property
    def _computing(self) -> float:
        return self._reached(self.operations, "operations")

    @property
    def _moving(self) -> float:
        return self._reached(self.moved, "bytes")

    def _reached(self, amount: int, what: str) -> float:
        best, peak = min(self.us) * 1e-6, self.peaks.get(what)
        return amount / best / peak if peak and best else 0.0


class Call(NamedTuple):
    """A call of a jitted function: its time without the trace's own, and what it was of."""

    us: float
    kernels: float
    compiling: float


@dataclass
class CallRow:
    """The calls of one jitted function; times in microseconds."""

    name: str
    line: str
    calls: list[Call] = field(default_factory=list)

    @property
    def total(self) -> float:
        return sum(call.us for call in self.calls)

    @property
    def usual(self) -> Call:
        """The mean of the calls that compiled nothing, or of all where there is no such call."""
        calls = [call for call in self.calls if not call.compiling] or self.calls
        return Call(*(sum(column) / len(calls) for column in zip(*calls, strict=True)))


class AliveRow(NamedTuple):
    """Tensors of one kind from one line: how many, and their bytes together."""

    what: str
    line: str
    tensors: int
    size: int


class Profile:
    """What a trace says of time and memory. `print` shows it as tables."""

    def __init__(self) -> None:
        self.wall = 0.0  # microseconds, as all times here
        self.kernels: list[KernelRow] = []
        self.calls: list[CallRow] = []
        self.lines: dict[str, float] = {}
        self.peak_memory: dict[str, int] = {}
        self.alive_at_peak: dict[str, list[AliveRow]] = {}
        self.making: dict[str, float] = {}  # schedule, codegen, render, compile, load
        self.device_time = self.copy_time = self.compile_time = 0.0
        self.launch_time = self.tracing_time = self.recording_time = 0.0
        self.note = ""  # why the program did not run to its end

    @property
    def python_time(self) -> float:
        """What is left: neither kernels nor compiling, nor calls around them, nor the profile."""
        return max(0.0, self.wall - sum(us for _, us, _ in self._known_parts()))

    def parts(self) -> list[tuple[str, float, str]]:
        """Where the time went: what, how many microseconds, and of what; they add up to `wall`."""
        known = [row for row in self._known_parts() if row[1]]
        return [*known, ("Python and all else", self.python_time, "")]

    def read(self, path: Path, wall: float | None = None) -> None:
        """Take the numbers of a trace; `wall` is the time of all, in microseconds."""
        rows: dict[int, KernelRow] = {}
        names: dict[int, str] = {}
        spans = _Spans()
        memory: dict[str, list[dict[str, Any]]] = {}
        calls: list[dict[str, Any]] = []
        for record in read_records(path):
            kind = record["kind"]
            if kind == "line":
                names[record["id"]] = f"{record['file']}:{record['row']}"
            elif kind == "kernel":
                rows[record["id"]] = _row(record)
            elif kind == "launch":
                self._add_launch(rows[record["kernel"]], record, names)
                spans.running.append((record["start"], record["end"]))
            elif kind == "copy":
                spans.copying.append((record["start"], record["end"]))
            elif kind == "phase":
                spans.making.append((record["start"], record["end"]))
                self._add_making(record["phase"], record["end"] - record["start"])
            elif kind == "compiled":
                spans.making.append((record["start"], record["start"] + record["us"]))
                self._add_making(record.get("step", "compile"), record["us"])
            elif kind == "call":
                calls.append(record)
            elif kind == "traced":
                spans.tracing.append((record["start"], record["end"]))
            elif kind == "memory":
                memory.setdefault(record["device"], []).append(record)
        self.kernels = sorted((r for r in rows.values() if r.us), key=_weight, reverse=True)
        for device, records in memory.items():
            self.peak_memory[device] = max(record["used"] for record in records)
            self.alive_at_peak[device] = alive_at_peak(records, names)
        self.calls = spans.call_rows(calls, names)
        self._add_times(spans, calls)
        self.wall = wall or max((end for _, end in spans.all()), default=0.0)

    def _add_times(self, spans: _Spans, calls: Sequence[dict[str, Any]]) -> None:
        """Each moment belongs to one part: to kernels before copies, compiling and calls."""
        running, copying, making = spans.running, spans.copying, spans.making
        inside = [(call["start"], call["end"]) for call in calls]
        self.device_time = _covered(running)
        self.copy_time = _covered(running + copying) - self.device_time
        known = self.device_time + self.copy_time
        self.compile_time = _covered(running + copying + making) - known
        own = sum(call["own"] for call in calls)
        around = _covered(running + copying + making + inside) - known - self.compile_time
        self.launch_time = max(0.0, around - own)
        others = running + copying + making + inside
        self.tracing_time = _covered(others + spans.tracing) - _covered(others)

    def _add_making(self, step: str, us: float) -> None:
        self.making[step] = self.making.get(step, 0.0) + us

    def _add_launch(self, row: KernelRow, record: dict[str, Any], names: dict[int, str]) -> None:
        spent = record["end"] - record["start"]
        row.us.append(spent)
        line = names.get(record.get("line", -1), "")
        row.line = row.line or line
        if line and not row.is_dry:
            self.lines[line] = self.lines.get(line, 0.0) + spent

    def _known_parts(self) -> list[tuple[str, float, str]]:
        """Where the time went but for Python: what, how much, and of what."""
        launches = sum(len(row.us) for row in self.kernels)
        calls = sum(len(row.calls) for row in self.calls)
        steps = ", ".join(f"{step} {_time(us)}" for step, us in self.making.items())
        return [
            ("kernels", self.device_time, f"{launches} runs of {len(self.kernels)}"),
            ("copies", self.copy_time, ""),
            ("compiling", self.compile_time, steps),
            ("calling jitted functions", self.launch_time, f"{calls} calls" if calls else ""),
            ("tracing jitted functions", self.tracing_time, ""),
            ("the profile itself", self.recording_time, ""),
        ]

    def __str__(self) -> str:
        whole = self.wall or 1.0
        parts = self.parts()
        width = max(len(name) for name, _, _ in parts)
        lines = [self.note] if self.note else []
        lines += [f"{_time(self.wall)} in all"]
        for name, us, of in parts:
            row = f"  {name:{width}}  {_time(us):>9}  {100 * us / whole:3.0f} %  {of}"
            lines.append(row.rstrip())
        memory = ", ".join(f"{on} {bytes_text(size)}" for on, size in self.peak_memory.items())
        if memory:
            lines.append(f"peak memory: {memory}")
        tables = (self._call_table(), self._kernel_table(), self._line_table())
        return "\n".join([*lines, *itertools.chain(*tables, self._memory_table())])

    def _call_table(self) -> Iterator[str]:
        """A row for each jitted function: its first call, and what a later one is of."""
        if not self.calls:
            return
        width = max(15, *(len(row.name) for row in self.calls))
        titles = ("calls", "first", "each", "kernels", "around")
        yield f"\n{'jitted function':{width}} {' '.join(f'{t:>9}' for t in titles)}  line"
        for row in self.calls:
            usual = row.usual
            around = usual.us - usual.kernels - usual.compiling
            times = map(_time, (row.calls[0].us, usual.us, usual.kernels, around))
            cells = " ".join(f"{text:>9}" for text in (str(len(row.calls)), *times))
            yield f"{row.name:{width}} {cells}  {row.line}".rstrip()

    def _kernel_table(self) -> Iterator[str]:
        shown = self.kernels[:_ROWS]
        if not shown:
            return
        width = max([6, *(len(row.name) for row in shown)])
        words = max([8, *(len(row.label) for row in shown)])
        titles = f"{'time':>9} {'runs':>6} {'each':>9} {'GFLOP/s':>9} {'GB/s':>7} {'peak':>9}"
        yield f"\n{'computes':{words}}  {'kernel':{width}}  {titles}  line"
        for row in shown:
            opening = f"{row.label:{words}}  {row.name:{width}}  "
            each = _time(row.total / len(row.us))
            times = f"{_time(row.total):>9} {len(row.us):6} {each:>9}"
            yield f"{opening}{times} {_rates(row)}  {row.line}".rstrip()
        if len(self.kernels) > _ROWS:
            rest = self.kernels[_ROWS:]
            yield f"and {len(rest)} others, {_time(sum(row.total for row in rest))}"

    def _line_table(self) -> Iterator[str]:
        if self.lines:
            yield "\nlines of the program"
        for line, us in sorted(self.lines.items(), key=lambda pair: -pair[1])[:_LINES]:
            yield f"  {_time(us):>9}  {line}"

    def _memory_table(self) -> Iterator[str]:
        for device, rows in self.alive_at_peak.items():
            if rows:
                yield f"\nalive at the peak of {device}, {bytes_text(self.peak_memory[device])}"
            for row in rows[:_LINES]:
                count = f"{row.tensors} x " if row.tensors > 1 else ""
                yield f"  {row.size / 1e6:9.2f} MB  {count}{row.what}  {row.line}".rstrip()
            if rest := rows[_LINES:]:
                size = sum(row.size for row in rest)
                yield f"  {size / 1e6:9.2f} MB  {sum(row.tensors for row in rest)} others"


def alive_at_peak(records: Sequence[dict[str, Any]], lines: dict[int, str]) -> list[AliveRow]:
    """The tensors that had memory when most of it was in use, by kind and line, largest first."""
    peak = max(range(len(records)), key=lambda i: records[i]["used"])
    alive: dict[int, dict[str, Any]] = {}
    unnamed = 0  # bytes given back of what was there before the trace
    for record in records[: peak + 1]:
        if "take" in record:
            alive[record["take"]] = record
        elif alive.pop(record["free"], None) is None:
            unnamed += record["bytes"]
    if unnamed and (rest := alive.pop(REST, None)) and rest["bytes"] > unnamed:
        alive[REST] = {**rest, "bytes": rest["bytes"] - unnamed}
    sums: dict[tuple[str, str], list[int]] = {}
    for record in alive.values():
        key = (record["what"], lines.get(record.get("line", -1), ""))
        sums.setdefault(key, []).append(record["bytes"])
    rows = [
        AliveRow(what, line, len(several), sum(several)) for (what, line), several in sums.items()
    ]
    return sorted(rows, key=lambda row: -row.size)


class _Spans:
    """The spans of a trace by what they are of."""

    def __init__(self) -> None:
        self.running: list[Span] = []
        self.copying: list[Span] = []
        self.making: list[Span] = []
        self.tracing: list[Span] = []  # Python that runs a function to see what it does

    def all(self) -> list[Span]:
        return self.running + self.copying + self.making

    def call_rows(self, calls: Sequence[dict[str, Any]], names: dict[int, str]) -> list[CallRow]:
        """The jitted functions, the one that took longest first."""
        rows: dict[str, CallRow] = {}
        running, making = _Sorted(self.running), _Sorted(self.making)
        for call in calls:
            start, end = call["start"], call["end"]
            line = names.get(call.get("line", -1), "")
            row = rows.setdefault(call["name"], CallRow(call["name"], line))
            inside = running.within(start, end)
            kernels = _covered(inside)
            compiling = _covered(inside + making.within(start, end)) - kernels
            row.calls.append(Call(end - start - call["own"], kernels, compiling))
        return sorted(rows.values(), key=lambda row: -row.total)


class _Sorted:
    """Spans in the order of their starts."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._spans = sorted(spans)
        self._starts = [start for start, _ in self._spans]

    def within(self, start: float, end: float) -> list[Span]:
        """Those that begin in an interval, cut to it."""
        first, last = bisect_left(self._starts, start), bisect_left(self._starts, end)
        return [(low, min(high, end)) for low, high in self._spans[first:last]]


def _row(record: dict[str, Any]) -> KernelRow:
    fields = ("name", "label", "device", "operations", "bytes", "peaks")
    return KernelRow(*(record.get(name, "") for name in fields))


def _covered(spans: Sequence[tuple[float, float]]) -> float:
    """How much time some spans take together; where they overlap, it counts once."""
    total, last = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, last))
        last = max(last, end)
    return total


def _weight(row: KernelRow) -> tuple[float, float]:
    """What counts of a kernel: its time, or its work where it did not run."""
    return (0.0, row.operations * len(row.us)) if row.is_dry else (row.total, 0.0)


def _rates(row: KernelRow) -> str:
    """What a kernel reached; nothing where no time passes, as on NULL."""
    if row.is_dry:
        return f"{'':9} {'':7} {'':>9}"
    best = min(row.us) * 1e3 or 1.0
    share = "in cache" if row.is_cached else f"{100 * row.share:.0f} %"
    return f"{row.operations / best:9.1f} {row.moved / best:7.1f} {share:>9}"


def _time(us: float) -> str:
    if us < 1e3:
        return f"{us:.1f} us"
    return f"{us / 1e3:.2f} ms" if us < 1e6 else f"{us / 1e6:.2f} s"


@contextmanager
def profile(path: str | os.PathLike[str] | None = None) -> Iterator[Profile]:
    """Profile a scope; afterwards the object has the numbers, and `print` shows them.

    The trace is kept where a `path` is given, for `weft viz`.
    """
    from tempfile import TemporaryDirectory

    found = Profile()
    with TemporaryDirectory() as folder:
        trace = Path(path) if path is not None else Path(folder) / "trace.jsonl"
        wall = spent = 0.0
        try:
            with recording(trace, graphs=path is not None) as writer:
                start = time.perf_counter()
                try:
                    yield found
                finally:  # the program may raise; what it did to there is of interest
                    wall, spent = time.perf_counter() - start, writer.spent
        finally:
            found.read(trace, wall * 1e6)
            found.recording_time = spent * 1e6
