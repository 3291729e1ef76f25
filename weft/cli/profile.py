"""`weft profile FILE`: run a program, then print where its time and memory went."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from weft.support.run_program import run_program


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--trace", metavar="FILE", help="keep the trace, for `weft viz`")
    parser.add_argument("file", help="a Python program that uses Weft")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")


def run(options: argparse.Namespace) -> int:
    from weft.viz.profile import profile

    path = Path(options.trace) if options.trace else None
    with profile(path) as found:
        status = run_program(options.file, options.arguments)
    print(found, file=sys.stderr)
    return status
