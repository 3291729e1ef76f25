"""`weft settings`: the table of settings with their values here."""

from __future__ import annotations

import argparse

from weft.cli.terminal import wrapped
from weft.support.settings import settings, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    del parser


def run(options: argparse.Namespace) -> int:
    for row in table():
        value = getattr(settings, row.name)
        changed = "" if value == row.default else f"  (default {row.default!r})"
        print(f"{row.variable}={value!r}{changed}")
        print(wrapped(row.meaning, "    "))
    return 0
