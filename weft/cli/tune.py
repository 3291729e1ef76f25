"""`weft tune FILE`: run a program with the search on, so that later runs find better schedules."""

from __future__ import annotations

import argparse
import runpy
import sys
from pathlib import Path

from weft.cli.terminal import positive
from weft.support.errors import UsageError
from weft.support.settings import Context


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="a Python program that uses Weft")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    parser.add_argument(
        "--width", type=positive, default=2, help="candidates of a search, as BEAM (2)"
    )
    parser.add_argument("--seconds", type=positive, default=20, help="the most for a kernel (20)")


def run(options: argparse.Namespace) -> int:
    """Run the program; the schedule of every kernel that it compiles is searched, once."""
    from weft.engine.search import FINDINGS

    if not Path(options.file).is_file():
        raise UsageError(f"tune: there is no file {options.file}")
    sys.argv = [options.file, *options.arguments]
    sys.path.insert(0, str(Path(options.file).resolve().parent))  # as Python itself does
    before = len(FINDINGS)
    with Context(BEAM=options.width, BEAM_SECONDS=options.seconds):
        status = _run(options.file)
    for name, found in FINDINGS[before:]:
        gain = found.default / found.seconds if found.seconds else 1.0
        print(f"{name:40} {found.measured:4} tried  {gain:5.2f}x", file=sys.stderr)
    if len(FINDINGS) > before:
        print(f"run it with BEAM={options.width} to use what was found", file=sys.stderr)
    else:
        print("no kernel was searched: all that it runs was found before", file=sys.stderr)
    return status


def _run(file: str) -> int:
    """Run a program to its end, which may be `sys.exit`; the exit status."""
    try:
        runpy.run_path(file, run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0
