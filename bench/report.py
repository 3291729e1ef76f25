"""The table of ratios that people read, and the JSON that machines read."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from typing import Any

from bench.peers import is_installed, version
from bench.run import Row

HEAD = ("benchmark", "Weft", "peer", "unit", "ratio", "goal", "of peak", "beside")
# Which columns are numbers, and so stand to the right.
NUMBERS = {1, 2, 4}


def render(rows: Sequence[Row]) -> str:
    """The table: a heading for each subject, and the lines of a benchmark below its name."""
    cells: list[tuple[str, ...] | str] = [HEAD]
    subject = ""
    for row in rows:
        heading = _heading(row)
        if heading != subject:
            subject = heading
            cells.append(subject)
        cells.append(_cells(row))
    # Columns that few subjects fill are left out where all of their cells are empty.
    filled = [c for c in cells[1:] if isinstance(c, tuple)]
    shown = max([i + 1 for c in filled for i in range(len(c)) if c[i]], default=len(HEAD))
    cells = [c[:shown] if isinstance(c, tuple) else c for c in cells]
    widths = [max(len(c[i]) for c in cells if isinstance(c, tuple)) for i in range(shown)]
    lines = [c if isinstance(c, str) else _aligned(c, widths) for c in cells]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def _heading(row: Row) -> str:
    against = f", against {version(row.benchmark.peer)}" if row.benchmark.peer else ""
    return f"{row.benchmark.subject}{against}"


def _cells(row: Row) -> tuple[str, ...]:
    ratio = "-" if row.ratio is None else f"{row.ratio:.2f}x"
    peer = "fails" if row.peer_fails else number(row.peer)
    weft = number(row.weft)
    name = f"  {row.benchmark.name}: {row.line.name}"
    beside = ", ".join(f"{name} {ratio:.2f}x" for name, ratio in other_ratios(row).items())
    return (name, weft, peer, row.line.unit, ratio, _verdict(row), row.share, beside)


def other_ratios(row: Row) -> dict[str, float]:
    """The figures of the further sides in units of Weft's."""
    return {name: figure / row.weft for name, figure in row.others.items() if row.weft}


def _verdict(row: Row) -> str:
    if row.line.goal is None:
        return ""
    mark = {True: "met", False: "MISSED", None: "unknown"}[row.is_met]
    return f"{row.line.goal.text}  {mark}"


def _aligned(cells: tuple[str, ...], widths: Sequence[int]) -> str:
    parts = [
        cell.rjust(width) if i in NUMBERS else cell.ljust(width)
        for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(parts).rstrip()


def number(figure: float | None) -> str:
    """Three digits of a time, all digits of a count, and a dash for nothing."""
    if figure is None:
        return "-"
    if figure == int(figure) or figure >= 100:
        return f"{figure:,.0f}"
    return f"{figure:.2f}" if figure >= 1 else f"{figure:.3f}"


def as_json(rows: Iterable[Row], notes: Sequence[str], rounds: int) -> dict[str, Any]:
    """All that the table says, and on what machine."""
    rows = list(rows)
    beside = {name for row in rows for name in row.others}
    peers = sorted({row.benchmark.peer for row in rows if row.benchmark.peer} | beside)
    return {
        "python": platform.python_version(),
        "machine": platform.platform(),
        "cores": os.cpu_count(),
        "rounds": rounds,
        "peers": {peer: version(peer).split()[1] for peer in peers if is_installed(peer)},
        "results": [_as_json(row) for row in rows],
        "notes": list(notes),
    }


def _as_json(row: Row) -> dict[str, Any]:
    goal = row.line.goal
    return {
        "subject": row.benchmark.subject,
        "benchmark": row.benchmark.name,
        "line": row.line.name,
        "unit": row.line.unit,
        "weft": row.weft,
        "peer": row.peer,
        "peer_name": row.benchmark.peer,
        "peer_fails": row.peer_fails,
        "ratio": row.ratio,
        "others": dict(row.others),
        "share": row.share,
        "goal": None if goal is None else goal.text,
        "is_met": row.is_met,
    }
