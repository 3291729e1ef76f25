"""A program of the user that a command runs: `weft profile`, `weft tune`, `weft diff`."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from weft.support.errors import MissingFile


def run_program(file: str, arguments: Sequence[str]) -> int:
    """Run a program to its end, which may be `sys.exit`, as Python itself would; its status."""
    if not Path(file).is_file():
        raise MissingFile(f"weft: there is no file {file}")
    sys.argv = [file, *arguments]
    sys.path.insert(0, str(Path(file).resolve().parent))
    try:
        runpy.run_path(file, run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0
