"""`weft profile FILE`: run a program, then print where its time and memory went."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from weft.support.errors import DeviceError, MissingFile
from weft.support.run_program import run_program
from weft.support.source_line import NOWHERE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--trace", metavar="FILE", help="keep the trace, for `weft viz`")
    parser.add_argument("file", help="a Python program that uses Weft")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")


def run(options: argparse.Namespace) -> int:
    from weft.engine.devices import default_device, device
    from weft.viz.profile import profile

    path = Path(options.trace) if options.trace else None
    failure: Exception | None = None
    status = 1
    with profile(path) as found:
        try:
            status = run_program(options.file, options.arguments)
        except MissingFile:
            raise
        except Exception as error:  # what the program did to there is of interest all the same
            failure = error
    is_dry = isinstance(failure, DeviceError) and device(default_device()).stores_nothing
    if failure is not None:
        found.note = _note(failure, is_dry)
    print(found, file=sys.stderr)
    if failure is None:
        return status
    if is_dry:
        return 0
    print(file=sys.stderr)
    raise failure


def _note(failure: Exception, is_dry: bool) -> str:
    """Why the profile ends where it does."""
    first = (str(failure).splitlines() or [""])[0]
    if is_dry:
        location = getattr(failure, "where", NOWHERE)
        read = f"{location.file}:{location.line}"
        return f"a dry run up to {read}, where a value is read: memory is counted, nothing ran"
    return f"the program raised {type(failure).__name__}: {first}; this is what it did to there"
