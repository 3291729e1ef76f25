"""`weft viz [TRACE]`: look at what happened, in a page.

Without a file it takes the newest trace of this folder. It serves the page to this machine alone,
until Ctrl-C; `--page FILE` writes one file instead, to keep or to send.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from weft.support.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", nargs="?", help="a file that VIZ=1 wrote; else the newest here")
    parser.add_argument("--page", metavar="FILE", help="write one file that holds everything")
    parser.add_argument("--port", type=int, default=0, help="the port of the page; 0 is any")
    parser.add_argument("--no-browser", action="store_true", help="only say where the page is")


def run(options: argparse.Namespace) -> int:
    from weft.viz.page import render_page
    from weft.viz.serve import serve

    trace = find_trace(options.trace)
    if options.page:
        Path(options.page).write_text(render_page(trace), encoding="utf-8")
        print(options.page)
        return 0
    serve(trace, options.port, opens_browser=not options.no_browser)
    return 0


def find_trace(name: str | None) -> Path:
    """The trace that is meant: a file, or the newest one of this folder."""
    if name is not None:
        path = Path(name)
        if not path.is_file():
            raise UsageError(f"weft: there is no file {name}", fix="run a program with VIZ=1")
        return path
    found = sorted(Path().glob("weft-trace-*.jsonl"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise UsageError(
            "weft: this folder has no trace",
            fix="write one: VIZ=1 python program.py",
        )
    return found[-1]
