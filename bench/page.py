"""Writes the page and the picture of the speed table.

    python -m bench --only speed --json FILE
    python -m bench.page docs/speed.md NAME=FILE ...

Each NAME=FILE is a column: the results under one target. The page says which versions were
compared and lists every row with its ratio.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

WIDTH, BAR, LABEL = 720, 18, 230
COLORS = ("#2a6f97", "#e07a5f", "#81b29a")
INTRO = """\
# Speed

Jitted calls of Weft beside torch eager, float32, on the CPU, both on two threads of the same
machine, in turns in one process; each keeps its fastest call. A ratio above 1 means that Weft is
faster. `python -m bench --only speed --json FILE` measures a column and `python -m bench.page`
writes this page. No kernel was searched for.

![Ratios to torch](images/speed.svg)
"""


def rows_of(path: Path) -> dict[str, dict[str, Any]]:
    """The lines of a result by name."""
    found = json.loads(path.read_text(encoding="utf-8"))
    return {row["line"]: row for row in found["results"] if row["subject"] == "speed"}


def page(columns: dict[str, dict[str, dict[str, Any]]], about: str) -> str:
    names = list(next(iter(columns.values())))
    head = "| work | " + " | ".join(f"{c}: Weft ms | torch ms | ratio" for c in columns) + " |"
    lines = [INTRO, about, "", head, "| --- |" + " --- |" * (3 * len(columns))]
    for name in names:
        cells = []
        for rows in columns.values():
            row = rows.get(name, {})
            weft, peer, ratio = row.get("weft"), row.get("peer"), row.get("ratio")
            cells += [_number(weft), _number(peer), f"**{ratio:.2f}**" if ratio else "-"]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


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
