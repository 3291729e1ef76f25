"""`weft tune FILE`: run a program with the search on, so that later runs find better schedules."""

from __future__ import annotations

import argparse
import sys

from weft.cli.terminal import positive
from weft.support.run_program import run_program
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

    before = len(FINDINGS)
    with Context(BEAM=options.width, BEAM_SECONDS=options.seconds):
        status = run_program(options.file, options.arguments)
    for name, found in FINDINGS[before:]:
        gain = found.default / found.seconds if found.seconds else 1.0
        print(f"{name:40} {found.measured:4} tried  {gain:5.2f}x", file=sys.stderr)
    if len(FINDINGS) > before:
        print(f"run it with BEAM={options.width} to use what was found", file=sys.stderr)
    else:
        print("no kernel was searched: all that it runs was found before", file=sys.stderr)
    return status
