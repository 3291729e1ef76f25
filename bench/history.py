"""What benchmarks have measured over time: a file to which each run adds a line.

    python -m bench --compare A B     what is slower in B than it was in A; 1 if something is
    python -m bench --draw FILE.svg   a small chart for each line of the table, over all runs

A and B are files that `--json` wrote, or runs of the history: a commit, or a number from the end,
-1 being the last one. Where both runs have the figure of a peer, what is compared is Weft's in
units of the peer's, so that a slow hour of the machine is not taken for a slow program.
"""

from __future__ import annotations

import json
import math
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Final

HISTORY: Final = Path(__file__).with_name("history.jsonl")
ENOUGH: Final = 1.10  # a line that is slower by more than this is reported
Run = dict[str, Any]


def append(results: Run, path: Path = HISTORY) -> None:
    """Add a run to the history."""
    line = json.dumps({"at": time.time(), "commit": commit(), **results}, separators=(",", ":"))
    with path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def read(path: Path = HISTORY) -> list[Run]:
    """All runs, the oldest first."""
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def commit() -> str:
    """The commit of this checkout; empty outside of one."""
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    try:
        done = subprocess.run(
            command, cwd=HISTORY.parent, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def find(name: str, path: Path = HISTORY) -> Run:
    """The run that somebody means by a file, a commit or a number from the end."""
    if Path(name).is_file():
        run: Run = json.loads(Path(name).read_text(encoding="utf-8"))
        return run
    runs = read(path)
    if name.lstrip("-").isdigit() and -len(runs) <= int(name) < 0:
        return runs[int(name)]
    for run in reversed(runs):
        if len(name) >= 4 and run.get("commit", "").startswith(name):
            return run
    known = ", ".join(dict.fromkeys(run.get("commit", "") for run in runs)) or "none"
    raise SystemExit(f"no run is called {name!r}: expected a file, or one of the history: {known}")


@dataclass(frozen=True)
class Change:
    """A line of both runs. `factor` is how much slower the second one is."""

    name: str
    before: float
    after: float
    unit: str
    factor: float
    is_beside_peer: bool


def compare(before: Run, after: Run) -> list[Change]:
    """How each line changed that both runs have, the slowest first."""
    old = {_name(row): row for row in before["results"]}
    changes = []
    for row in after["results"]:
        other = old.get(_name(row))
        if other is None or not row["weft"] or not other["weft"]:
            continue
        has_peer = bool(row["ratio"] and other["ratio"])
        factor = other["ratio"] / row["ratio"] if has_peer else row["weft"] / other["weft"]
        figures = other["weft"], row["weft"], row["unit"]
        changes.append(Change(_name(row), *figures, factor, has_peer))
    return sorted(changes, key=lambda change: -change.factor)


def _name(row: dict[str, Any]) -> str:
    return f"{row['subject']}/{row['benchmark']}: {row['line']}"


def report(changes: Sequence[Change]) -> tuple[str, bool]:
    """What became slower and what faster as text, and whether anything is slower."""
    slower = [c for c in changes if c.factor > ENOUGH]
    faster = [c for c in reversed(changes) if c.factor < 1 / ENOUGH]
    width = max((len(change.name) for change in [*slower, *faster]), default=0)
    lines = []
    for title, rows in (("slower", slower), ("faster", faster)):
        if rows:
            lines.append(title)
        for c in rows:
            factor = c.factor if title == "slower" else 1 / c.factor
            how = "beside its peer" if c.is_beside_peer else "alone"
            figures = f"{c.before:.4g} -> {c.after:.4g} {c.unit}"
            lines.append(f"  {c.name:{width}}  {factor:5.2f}x {how}  ({figures})")
    same = len(changes) - len(slower) - len(faster)
    lines.append(f"{same} of {len(changes)} lines are the same within {ENOUGH - 1:.0%}")
    return "\n".join(lines), bool(slower)


# ---- a drawing

WIDE: Final = 260  # of a chart
HIGH: Final = 60
ROW: Final = 108
ACROSS: Final = 3  # charts beside each other


def draw(runs: Sequence[Run]) -> str:
    """A small chart for each line of the table, as SVG: the figure over the runs."""
    series: dict[str, list[tuple[int, float, str]]] = {}
    for number, run in enumerate(runs):
        for row in run["results"]:
            if row["weft"]:
                series.setdefault(_name(row), []).append((number, row["weft"], row["unit"]))
    rows = -(-len(series) // ACROSS)
    charts = [
        _chart(name, points, len(runs), 20 + (i % ACROSS) * (WIDE + 40), 20 + (i // ACROSS) * ROW)
        for i, (name, points) in enumerate(series.items())
    ]
    size = f"0 0 {ACROSS * (WIDE + 40)} {rows * ROW + 30}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" '
        'font-family="system-ui, sans-serif" font-size="11">\n'
        f'<rect width="100%" height="100%" fill="#fff"/>\n{"".join(charts)}</svg>\n'
    )


def _chart(
    name: str, points: Sequence[tuple[int, float, str]], runs: int, left: float, top: float
) -> str:
    figures = [math.log(figure) for _, figure, _ in points]
    low, high = min(figures), max(figures)
    spread = max(high - low, 0.2)  # a line that does not change is flat

    def point(number: int, figure: float) -> tuple[float, float]:
        x = left + WIDE * number / max(runs - 1, 1)
        return x, top + 22 + HIGH * (1 - (math.log(figure) - low) / spread)

    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (point(n, f) for n, f, _ in points))
    (x, y), (_, last, unit) = point(points[-1][0], points[-1][1]), points[-1]
    return (
        f'<text x="{left}" y="{top + 10}" fill="#222">{escape(name)}</text>'
        f'<text x="{left + WIDE}" y="{top + 10}" fill="#666" text-anchor="end">'
        f"{last:.4g} {escape(unit)}</text>"
        f'<polyline points="{path}" fill="none" stroke="#3f5bd9" stroke-width="1.6"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="#3f5bd9"/>\n'
    )
