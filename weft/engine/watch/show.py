"""What `DEBUG=2` prints: a line for each kernel that ran, and the sums at the end.

number  device  what it computes  shapes  time  GFLOP/s  GB/s  share of the peak  memory  line
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from weft.engine.counters import GlobalCounters
from weft.ir.program import Estimate
from weft.ir.shapes import shape_of
from weft.runtime.device import Device
from weft.support.colors import colored, has_colors
from weft.target.target import Peaks

if TYPE_CHECKING:
    from weft.engine.run import PlannedLaunch

_RATES: Final = 29  # columns
_WIDTHS: Final = {"label": 24, "shapes": 30, "name": 28}
# From which share of the peak on a kernel is good, and from which it is fair.
_GOOD: Final = 0.5
_FAIR: Final = 0.2
_SHORT: Final = 1e-4  # seconds: below it a launch costs as much as what it does


class _Totals:
    """Sums of what was shown."""

    kernels = 0
    operations = 0
    moved = 0
    seconds = 0.0
    is_timed = False


_TOTALS: Final = _Totals()


def peaks_of(device: Device, estimate: Estimate) -> Peaks:
    """What a device can do at best with such work; unknown of one that runs nothing."""
    return Peaks() if device.stores_nothing else _peaks(device, estimate)


def _peaks(device: Device, estimate: Estimate) -> Peaks:
    peaks = device.target.peaks
    return replace(peaks, operations=estimate.rate) if estimate.rate else peaks


def least_seconds(estimate: Estimate, peaks: Peaks) -> float:
    """What work takes at least on a machine of these peaks.

    >>> least_seconds(Estimate(operations=50, bytes_read=90), Peaks(100.0, 30.0))
    3.0
    """
    computing = estimate.operations / peaks.operations if peaks.operations else 0.0
    moving = estimate.moved / peaks.bytes_moved if peaks.bytes_moved else 0.0
    return max(computing, moving)


def show_runs(device: Device, steps: Sequence[PlannedLaunch], clock: Sequence[float]) -> None:
    """Print the lines of a list that ran: the clock before the first kernel and after each."""
    first = GlobalCounters.kernel_count - len(steps) + 1
    for number, step in enumerate(steps):
        show_run(device, step, clock[number + 1] - clock[number], first + number)


def show_run(device: Device, step: PlannedLaunch, seconds: float, number: int) -> None:
    """Print the line of a kernel that ran; it is this one since the counters were reset.

    That of a device which runs nothing has the least time that its machine would take.
    """
    estimate = step.loaded.program.estimate
    if device.stores_nothing:
        seconds = least_seconds(estimate, _peaks(device, estimate))
    if not _TOTALS.kernels:
        atexit.register(_show_totals)
    _TOTALS.kernels += 1
    _TOTALS.operations += estimate.operations
    _TOTALS.moved += estimate.moved
    _TOTALS.seconds += seconds
    _TOTALS.is_timed = _TOTALS.is_timed or not device.stores_nothing
    print(describe_run(device, step, seconds, number, has_colors()))


def describe_run(
    device: Device, step: PlannedLaunch, seconds: float, number: int, is_colored: bool = False
) -> str:
    """One line about a kernel that ran."""
    program = step.loaded.program
    estimate = program.estimate
    peaks = peaks_of(device, estimate)
    label = colored(_fitted(step.label, "label"), "cyan", is_colored)
    rates = "" if device.stores_nothing else _rates(estimate.operations, estimate.moved, seconds)
    share = colored(
        f"{share_of_peak(estimate, peaks, seconds):>10}",
        _color(_share(estimate, peaks, seconds), seconds),
        is_colored,
    )
    line = "" if step.line is None else f"{step.line.file}:{step.line.line}"
    return (
        f"{number:6} {device.name:6} {label}"
        f" {_fitted(_shapes(step), 'shapes')} {_fitted(program.name, 'name')} {_time(seconds)}"
        f" {rates:{_RATES}} {share}"
        f" {GlobalCounters.mem_used / 1e6:9.2f} MB  {colored(line, 'dim', is_colored)}"
    ).rstrip()


def _fitted(text: str, column: str) -> str:
    width = _WIDTHS[column]
    return f"{text:{width}}" if len(text) <= width else text[: width - 1] + "…"


def _shapes(step: PlannedLaunch) -> str:
    """What is written, and what is read for it: `64x10 <- 64x32 32x10`."""
    written: list[str] = []
    read: list[str] = []
    for parameter, node in zip(step.loaded.program.parameters, step.memory, strict=False):
        text = "x".join(map(_size, shape_of(node))) or "1"
        (written if parameter.is_written else read).append(text)
    return " ".join([*written, *(["<-", *read] if read else [])])


def _size(size: object) -> str:
    return str(size) if isinstance(size, int) else "n"


def _time(seconds: float) -> str:
    if seconds < 1e-2:
        return f"{seconds * 1e6:10.1f} us"
    return f"{seconds * 1e3:10.2f} ms" if seconds < 1 else f"{seconds:10.3f} s "


def _rates(operations: int, moved: int, seconds: float) -> str:
    seconds = seconds or 1e-9
    return f"{operations / seconds / 1e9:8.2f} GFLOP/s {moved / seconds / 1e9:7.2f} GB/s"


def _shares(estimate: Estimate, peaks: Peaks, seconds: float) -> tuple[float, float]:
    """What was reached of the machine's operations and of its memory's bandwidth."""
    seconds = seconds or 1e-9
    computing = estimate.operations / peaks.operations if peaks.operations else 0.0
    moving = estimate.moved / peaks.bytes_moved if peaks.bytes_moved else 0.0
    return computing / seconds, moving / seconds


def _share(estimate: Estimate, peaks: Peaks, seconds: float) -> float:
    return max(_shares(estimate, peaks, seconds))


def _color(share: float, seconds: float) -> str:
    if seconds < _SHORT:
        return "dim"
    return "green" if share >= _GOOD else "yellow" if share >= _FAIR else "red"


def share_of_peak(estimate: Estimate, peaks: Peaks, seconds: float) -> str:
    """How much of what the machine can do a kernel reached, in what bounds it.

    A kernel that moves more than memory can has its operands in a cache.

    >>> share_of_peak(Estimate(operations=50), Peaks(operations=100.0), 1.0)
    ' 50% flops'
    >>> share_of_peak(Estimate(bytes_read=90), Peaks(bytes_moved=30.0), 1.0)
    'in cache'
    """
    computing, moving = _shares(estimate, peaks, seconds)
    if not computing and not moving:
        return ""
    if moving > 1.0 and moving > computing:
        return "in cache"
    what = "flops" if computing > moving else "bytes"
    return f"{100 * max(computing, moving):3.0f}% {what}"


def _show_totals() -> None:
    """The sums, at the end of the program."""
    totals = _TOTALS
    peak = ", ".join(
        f"{name} {size / 1e6:.2f} MB" for name, size in GlobalCounters.peak_memory.items()
    )
    rates = _rates(totals.operations, totals.moved, totals.seconds).split()
    shown = " ".join(rates) if totals.is_timed else "at least: counted, not run"
    spent = _time(totals.seconds).strip()
    text = f"{totals.kernels:6} kernels  {spent}  {shown}  peak memory {peak}"
    try:
        print(colored(text, "bold", has_colors()))
    except (ValueError, OSError):  # the stream is closed
        sys.stderr.flush()
