"""`weft tune FILE`: run a program with the search on, so that later runs find better recipes."""

from __future__ import annotations

import argparse
import runpy
import sys

from weft.support.settings import Context


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="a Python program that uses Weft")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    parser.add_argument("--width", type=int, default=2, help="candidates kept, as BEAM (2)")
    parser.add_argument("--seconds", type=int, default=20, help="the most for one kernel (20)")


def run(options: argparse.Namespace) -> int:
    """Run the program; every kernel that it compiles is searched for, once."""
    from weft.engine.search import FINDINGS

    sys.argv = [options.file, *options.arguments]
    with Context(BEAM=options.width, BEAM_SECONDS=options.seconds):
        runpy.run_path(options.file, run_name="__main__")
    for name, found in FINDINGS:
        gain = found.default / found.seconds if found.seconds else 1.0
        print(f"{name:40} {found.measured:4} tried  {gain:5.2f}x", file=sys.stderr)
    print(f"run it with BEAM={options.width} to use what was found", file=sys.stderr)
    return 0
