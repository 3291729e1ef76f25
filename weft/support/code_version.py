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

_ROOT = Path(__file__).parent.parent
# The packages that decide the code that a kernel becomes.
COMPILER = ("ir", "rewrite", "rules", "target", "codegen", "render", "runtime")


@functools.cache
def code_version(packages: tuple[str, ...] = COMPILER) -> str:
    """A short text that differs whenever a module of these packages of Weft does.

    >>> code_version(("ir", "rules")) == code_version(("ir", "rules"))
    True
    """
    digest = hashlib.blake2b(digest_size=12)
    for package in packages:
        for folder, folders, files in os.walk(_ROOT / package):
            folders.sort()
            for name in sorted(files):
                if name.endswith(".py"):
                    file = os.stat(os.path.join(folder, name))
                    facts = f"{package} {name} {file.st_size} {file.st_mtime_ns}\n"
                    digest.update(facts.encode())
    return digest.hexdigest()
