"""`weft explain CODE`: the page behind an error code."""

from __future__ import annotations

import argparse

from weft.cli.terminal import wrapped
from weft.support.error_table import ERROR_TABLE, explain


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("code", nargs="?", help="a code such as W101, or the name of an error")


def run(options: argparse.Namespace) -> int:
    if not options.code:
        for row in ERROR_TABLE:
            print(f"{row.code}  {row.name}")
        print()
        print(wrapped("`weft explain CODE` says what an error means and how to get out of it"))
        return 0
    row = explain(options.code)
    print(f"{row.code} {row.name}\n")
    print(wrapped(row.explanation))
    return 0
