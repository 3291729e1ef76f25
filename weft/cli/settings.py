"""`weft settings`: the table of settings with their values here."""

from __future__ import annotations

import argparse
import textwrap

from weft.support.settings import settings, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    del parser


def run(options: argparse.Namespace) -> int:
    for row in table():
        value = getattr(settings, row.name)
        changed = "" if value == row.default else f"  (default {row.default!r})"
        variable = "" if row.variable == row.name else f"  [{row.variable}]"
        print(f"{row.name}={value!r}{changed}{variable}")
        print(textwrap.indent(textwrap.fill(row.meaning, 84), "    "))
    return 0
