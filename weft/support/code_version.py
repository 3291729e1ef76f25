"""The version of Weft's own code, for keys of what it made: another compiler makes other code.

`engine/compile.py` asks for the packages that decide what a kernel becomes. Names, sizes and times
of the files stand for their contents, because reading them all would take longer than compiling a
kernel; a changed file is always another version.
"""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path

_ROOT = str(Path(__file__).parent.parent)
# The packages that decide the code that a kernel becomes.
COMPILER = ("ir", "rewrite", "rules", "target", "codegen", "render", "runtime")


@functools.cache
def code_version(packages: tuple[str, ...] = COMPILER) -> str:
    """A short text that differs whenever a module of these packages of Weft does.

    >>> code_version(("ir", "rules")) == code_version(("ir", "rules"))
    True
    """
    facts: list[tuple[str, int, int]] = []
    folders = list(packages)
    while folders:  # every process comes here, so a file costs no call of Python
        folder = folders.pop()
        with os.scandir(f"{_ROOT}/{folder}") as entries:
            for entry in entries:
                name = f"{folder}/{entry.name}"
                if name.endswith(".py"):
                    file = entry.stat()
                    facts.append((name, file.st_size, file.st_mtime_ns))
                elif "." not in entry.name and entry.is_dir():
                    folders.append(name)
    return hashlib.blake2b(repr(sorted(facts)).encode(), digest_size=12).hexdigest()
