"""Writes the page and the picture of the speed table.

    python -m bench --only speed --beside --search --json FILE
    python -m bench.page docs/speed.md NAME=FILE ...

Each NAME=FILE holds the results under one target. The page says which versions were compared and
lists every row with its ratios.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.speed import compiling

WIDTH, BAR, LABEL = 720, 18, 230
COLORS = ("#2a6f97", "#e07a5f", "#81b29a")
INTRO = """\
# Speed

Jitted calls of Weft beside torch eager: float32, on the CPU, both on two threads of the same
machine, alternating in one process; each keeps its fastest call. The columns with a peer's name
say how many times as long it takes: above 1, Weft is faster. torch uses all that the processor has
in every table. `python -m bench --only speed --json FILE` measures, with `--beside` also what
torch compiles and what tinygrad jits, and `python -m bench.page` writes this page.

"Of peak" counts the operations and bytes of the work against what handwritten loops reach on this
machine in the same process; it passes 100% where a cache holds what was moved. "Compile" is the
processor time of the kernel of the work that compiles longest, from its graph to machine code. No
kernel was searched for, but for the column "searched" (`--search`, a width of 2): Weft again, with
the kernels that the search found, or a dash where it found none faster. Below 1, what it found is
faster; beyond the noise of a measurement it is never above 1, because a schedule has to beat the
default in every round of a duel.

![Ratios to torch](images/speed.svg)
"""


def rows_of(path: Path) -> dict[str, dict[str, Any]]:
    """The races of a result by name, each with the time of its slowest compilation."""
    found = json.loads(path.read_text(encoding="utf-8"))
    lines = {row["line"]: row for row in found["results"] if row["subject"] == "speed"}
    compiled = {name: lines.get(compiling(name), {}).get("weft") for name in lines}
    races = [name for name in lines if compiling(name) in lines]
    return {name: {**lines[name], "compile": compiled[name]} for name in races}


def page(columns: dict[str, dict[str, dict[str, Any]]], about: str) -> str:
    return "\n".join([INTRO, about, *(_section(*column) for column in columns.items())]) + "\n"


def _section(title: str, rows: dict[str, dict[str, Any]]) -> str:
    """The table of one target: times, and how long the others take in units of Weft's time."""
    others = list(dict.fromkeys(name for row in rows.values() for name in row["others"]))
    heads = ["work", "Weft ms", "of peak", "compile ms", "torch ms", "torch", *others]
    lines = ["", f"## {title}", "", _cells(heads), _cells(["---"] * len(heads))]
    for name, row in rows.items():
        weft, ratio = row["weft"], row["ratio"]
        beside = [row["others"].get(other) for other in others]
        cells = [name, _number(weft), row["share"] or "-", _number(row["compile"], 2)]
        cells += [_number(row["peer"]), f"**{ratio:.2f}**" if ratio else "-"]
        cells += [f"{other / weft:.2f}" if other and weft else "-" for other in beside]
        lines.append(_cells(cells))
    return "\n".join(lines)


def _cells(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _number(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}g}"


def picture(columns: dict[str, dict[str, dict[str, Any]]]) -> str:
    """Bars of the ratios, cut at 3, with a line at 1."""
    names = list(next(iter(columns.values())))
    step = BAR * len(columns) + 8
    height = step * len(names) + 40
    scale = (WIDTH - LABEL - 40) / 3
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        'font-family="sans-serif" font-size="12">'
    ]
    for position, name in enumerate(names):
        top = 30 + position * step
        parts.append(f'<text x="{LABEL - 8}" y="{top + 13}" text-anchor="end">{name}</text>')
        for number, rows in enumerate(columns.values()):
            ratio = rows.get(name, {}).get("ratio") or 0.0
            y, wide = top + number * BAR, min(ratio, 3) * scale
            color = COLORS[number % len(COLORS)]
            parts.append(
                f'<rect x="{LABEL}" y="{y}" width="{wide:.0f}" height="{BAR - 4}" fill="{color}"/>'
                f'<text x="{LABEL + wide + 4:.0f}" y="{y + 12}">{ratio:.2f}</text>'
            )
    for number, column in enumerate(columns):
        color = COLORS[number % len(COLORS)]
        parts.append(f'<text x="{LABEL + 160 * number}" y="16" fill="{color}">{column}</text>')
    one = LABEL + scale
    parts.append(f'<line x1="{one}" y1="24" x2="{one}" y2="{height}" stroke="#888"/></svg>')
    return "\n".join(parts) + "\n"


def main(arguments: Sequence[str]) -> int:
    target, *files = arguments
    columns = {}
    for each in files:
        name, _, path = each.partition("=")
        columns[name] = rows_of(Path(path))
    first = json.loads(Path(files[0].partition("=")[2]).read_text(encoding="utf-8"))
    peers = ", ".join(f"{name} {version}" for name, version in first["peers"].items())
    about = f"Python {first['python']}, {first['cores']} cores, {peers}."
    Path(target).write_text(page(columns, about), encoding="utf-8")
    image = Path(target).parent / "images" / "speed.svg"
    image.parent.mkdir(exist_ok=True)
    image.write_text(picture(columns), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
