"""`weft explain CODE`: the page behind an error code."""

from __future__ import annotations

import argparse
import textwrap

from weft.support.error_table import ERROR_TABLE, explain


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("code", nargs="?", help="a code such as W101, or the name of an error")


def run(options: argparse.Namespace) -> int:
    if not options.code:
        for row in ERROR_TABLE:
            print(f"{row.code}  {row.name}")
        return 0
    row = explain(options.code)
    print(f"{row.code} {row.name}\n")
    print(textwrap.fill(row.explanation, 88))
    return 0
