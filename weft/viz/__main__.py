"""`python -m weft.viz FILE [PAGE]`: make a page of a trace file that `VIZ=1` wrote."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from weft.viz.page import read_trace, render_page


def main(arguments: Sequence[str]) -> int:
    """Write the page beside the trace, or where it is asked for, and say where."""
    if not 1 <= len(arguments) <= 2:
        print("usage: python -m weft.viz FILE [PAGE]", file=sys.stderr)
        return 2
    source = Path(arguments[0])
    page = Path(arguments[1]) if len(arguments) == 2 else source.with_suffix(".html")
    with source.open(encoding="utf-8") as lines:
        runs = read_trace(lines, source.name)
    page.write_text(render_page(runs), encoding="utf-8")
    print(page)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
