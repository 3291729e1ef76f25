"""`weft devices`: every back end, found or with what is missing."""

from __future__ import annotations

import argparse
import textwrap

from weft.cli.terminal import columns, wrapped
from weft.support.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    del parser


def run(options: argparse.Namespace) -> int:
    """List the devices; a device that cannot be opened says what to do about it."""
    from weft.engine.devices import KINDS, default_device

    for kind in KINDS:
        mark = "*" if kind == default_device() else " "
        first, *rest = textwrap.wrap(describe(kind), max(20, columns(120) - 11))
        print(f"{mark} {kind:8} {first}", *(" " * 11 + line for line in rest), sep="\n")
    print()
    print(wrapped("* is the default; DEVICE=NAME, or device=NAME for a tensor, chooses another"))
    return 0


def describe(kind: str) -> str:
    """One line about a device, opened to see whether it works."""
    from weft.engine.devices import KINDS, device

    if KINDS[kind].is_file:  # there is one for each file, and none without a file
        return f"found: files, as {kind}:path; Tensor(Path(path)) reads one"
    try:
        found = device(kind)
    except UsageError as error:
        first, *rest = str(error).splitlines()
        fix = next((line.strip() for line in rest if line.strip().startswith("fix:")), "")
        return f"not found: {first.partition(': ')[2] or first}{'; ' + fix if fix else ''}"
    return "found: " + ", ".join(fact for fact in (found.target.name, *found.facts) if fact)
