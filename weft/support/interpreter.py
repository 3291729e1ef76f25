"""The interpreters that Weft runs on: any whose threads hold one lock while they run Python.

`weft/__init__.py` imports this first. A free-threaded build is fine as long as its lock is on.
Without it the table of nodes, the caches and the counts of references that tell whether somebody
else holds a node would have to be guarded one by one, and none of that has been tested.
"""

from __future__ import annotations

import sys

from weft.support.errors import NotSupported


def require_lock() -> None:
    """Raise where the interpreter runs threads without its lock."""
    is_enabled = getattr(sys, "_is_gil_enabled", None)  # from 3.13 on
    if is_enabled is not None and not is_enabled():
        raise NotSupported(
            "weft: this interpreter runs without the global interpreter lock",
            facts=[("Python", sys.version.split()[0] + ", free-threaded")],
            rule="Weft has been tested with the lock alone: graphs are shared by all threads",
            fix="turn it on: PYTHON_GIL=1 python program.py, or python -X gil=1 program.py",
        )


require_lock()
