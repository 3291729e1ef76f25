"""Writes the page of whole networks.

    python -m bench --only networks --json FILE
    python -m bench.network_page docs/speed-networks.md FILE ...

Each FILE holds the results of some networks; the page lists all of them, and says how many
threads were measured: `THREADS=1` takes processor time, which other programs disturb less.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.networks import FORWARD_1, FORWARD_8, STEP

INTRO = f"""\
# Speed of whole networks

Jitted networks of Weft beside torch eager: float32, on the CPU, with equal weights, alternating in
one process; each keeps its fastest call. The ratio is torch's time over Weft's: above 1, Weft is
faster. A training step is the forward pass, all gradients and AdamW, of {STEP.split()[-1]} inputs.
Nothing is tuned for a network, and no kernel was searched for.

`python -m bench --only networks --json FILE` measures, `python -m bench.network_page` writes this
page, and [network_models.py](../bench/network_models.py) has the networks: one source for both
libraries. On one thread (`THREADS=1`) the clock is that of the processor, which other programs
disturb less, but by the caches that they share; two threads are measured by the clock on the
wall, and need a machine of their own.
"""
LINES = (FORWARD_1, FORWARD_8, STEP)
Rows = dict[str, dict[str, dict[str, Any]]]  # by network and line


def rows_of(paths: Sequence[Path]) -> Rows:
    """The rows of all results, in the order of the files."""
    rows: Rows = {}
    for path in paths:
        for row in json.loads(path.read_text(encoding="utf-8"))["results"]:
            name = next((line for line in LINES if row["line"].endswith(f", {line}")), None)
            if row["subject"] == "networks" and name is not None:
                rows.setdefault(row["line"].removesuffix(f", {name}"), {})[name] = row
    return rows


def page(rows: Rows, about: str) -> str:
    """The page: a row for each network, and the geometric mean of all ratios."""
    heads = ["network"] + [f"{line}: Weft ms | torch ms | ratio" for line in LINES]
    marks = ["---"] * (1 + 3 * len(LINES))
    lines = [INTRO, about, "", f"| {' | '.join(heads)} |", f"| {' | '.join(marks)} |"]
    for network, found in rows.items():
        cells = [network]
        for line in LINES:
            row = found.get(line, {})
            ratio = row.get("ratio")
            cells += [_number(row.get("weft")), _number(row.get("peer"))]
            cells.append(f"**{ratio:.2f}**" if ratio else "-")
        lines.append(f"| {' | '.join(cells)} |")
    ratios = [row["ratio"] for found in rows.values() for row in found.values() if row["ratio"]]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    slower = sum(ratio < 1 for ratio in ratios)
    lines += ["", f"The geometric mean of the {len(ratios)} ratios is **{mean:.2f}**;"]
    lines.append(f"{slower} of them {'is' if slower == 1 else 'are'} below 1.")
    return "\n".join(lines) + "\n"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def main(arguments: Sequence[str]) -> int:
    from weft.engine.devices import device

    target, *files = arguments
    first = json.loads(Path(files[0]).read_text(encoding="utf-8"))
    peers = ", ".join(f"{name} {version}" for name, version in first["peers"].items())
    count = device("CPU").target.units
    threads = "one thread" if count == 1 else f"{count} threads"
    about = f"Python {first['python']}, {peers}; {threads} on both sides."
    text = page(rows_of([Path(each) for each in files]), about)
    Path(target).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
