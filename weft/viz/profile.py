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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from weft.engine.watch.memory_record import REST
from weft.rewrite.trace_file import recording
from weft.viz.page import read_records

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
    def share(self) -> float:
        """How much of what the machine can do the best run reached, in what bounds it."""
        best = min(self.us) * 1e-6
        computing, moving = self.peaks.get("operations"), self.peaks.get("bytes")
        reached = [0.0]
        if computing:
            reached.append(self.operations / best / computing)
        if moving:
            reached.append(self.moved / best / moving)
        return max(reached)


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
        self.lines: dict[str, float] = {}
        self.peak_memory: dict[str, int] = {}
        self.alive_at_peak: dict[str, list[AliveRow]] = {}
        self.device_time = self.compile_time = self.recording_time = 0.0

    @property
    def python_time(self) -> float:
        """What is neither kernels nor compiling, nor the profile itself."""
        others = self.device_time + self.compile_time + self.recording_time
        return max(0.0, self.wall - others)

    def read(self, path: Path, wall: float | None = None) -> None:
        """Take the numbers of a trace; `wall` is the time of all, in microseconds."""
        rows: dict[int, KernelRow] = {}
        names: dict[int, str] = {}
        running: list[tuple[float, float]] = []
        making: list[tuple[float, float]] = []
        memory: dict[str, list[dict[str, Any]]] = {}
        for record in read_records(path):
            kind = record["kind"]
            if kind == "line":
                names[record["id"]] = f"{record['file']}:{record['row']}"
            elif kind == "kernel":
                rows[record["id"]] = _row(record)
            elif kind == "launch":
                self._add_launch(rows[record["kernel"]], record, names)
                running.append((record["start"], record["end"]))
            elif kind == "copy":
                running.append((record["start"], record["end"]))
            elif kind == "phase":
                making.append((record["start"], record["end"]))
            elif kind == "compiled":
                making.append((record["start"], record["start"] + record["us"]))
            elif kind == "memory":
                memory.setdefault(record["device"], []).append(record)
        self.kernels = sorted((r for r in rows.values() if r.us), key=lambda r: -r.total)
        for device, records in memory.items():
            self.peak_memory[device] = max(record["used"] for record in records)
            self.alive_at_peak[device] = alive_at_peak(records, names)
        self.device_time = _covered(running)
        self.compile_time = _covered(making + running) - self.device_time
        self.wall = wall or max((end for _, end in making + running), default=0.0)

    def _add_launch(self, row: KernelRow, record: dict[str, Any], names: dict[int, str]) -> None:
        spent = record["end"] - record["start"]
        row.us.append(spent)
        line = names.get(record.get("line", -1), "")
        if line:
            row.line = row.line or line
            self.lines[line] = self.lines.get(line, 0.0) + spent

    def __str__(self) -> str:
        parts = {
            "kernels": self.device_time,
            "compiling": self.compile_time,
            "Python": self.python_time,
            "the profile itself": self.recording_time,
        }
        whole = self.wall or 1.0
        shares = ", ".join(
            f"{name} {_time(us)} ({100 * us / whole:.0f} %)" for name, us in parts.items()
        )
        memory = ", ".join(f"{on} {size / 1e6:.1f} MB" for on, size in self.peak_memory.items())
        lines = [f"{_time(self.wall)} in all: {shares}"]
        if memory:
            lines.append(f"peak memory: {memory}")
        tables = (self._kernel_table(), self._line_table(), self._memory_table())
        return "\n".join([*lines, "", *itertools.chain(*tables)])

    def _kernel_table(self) -> Iterator[str]:
        shown = self.kernels[:_ROWS]
        width = max([6, *(len(row.name) for row in shown)])
        words = max([8, *(len(row.label) for row in shown)])
        titles = f"{'time':>9} {'runs':>6} {'each':>9} {'GFLOP/s':>9} {'GB/s':>7} {'peak':>5}"
        yield f"{'computes':{words}}  {'kernel':{width}}  {titles}  line"
        for row in shown:
            best = min(row.us) * 1e3
            yield (
                f"{row.label:{words}}  {row.name:{width}}  {_time(row.total):>9} {len(row.us):6}"
                f" {_time(row.total / len(row.us)):>9} {row.operations / best:9.1f}"
                f" {row.moved / best:7.1f} {100 * row.share:4.0f}%  {row.line}"
            )
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
                yield f"\nalive at the peak of {device}, {self.peak_memory[device] / 1e6:.1f} MB"
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
        try:
            with recording(trace, graphs=path is not None) as writer:
                start = time.perf_counter()
                yield found
                wall = time.perf_counter() - start
                found.recording_time = writer.spent * 1e6
        finally:
            found.read(trace)
        found.wall = wall * 1e6
