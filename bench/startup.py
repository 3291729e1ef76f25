"""What it costs to start: the import, in a fresh process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.contest import Contest, Figures, Line, Subject, at_most

SUBJECT = Subject("startup", peer="tinygrad")

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = """
from time import perf_counter
start = perf_counter()
import {module}
print(perf_counter() - start)
"""


def import_milliseconds(module: str) -> float:
    """How long a fresh interpreter takes for an import, its own start not counted."""
    command = [sys.executable, "-c", PROGRAM.format(module=module)]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return float(done.stdout) * 1e3


@SUBJECT.benchmark("import", Line("fresh process", "ms", at_most(100, "ms")))
class Import(Contest):
    """Import the framework in a fresh process, its bytecode written before."""

    def __init__(self, has_peer: bool) -> None:
        super().__init__(has_peer)
        self.weft()
        if has_peer:
            self.peer()

    def weft(self) -> Figures:
        return {"fresh process": import_milliseconds("weft")}

    def peer(self) -> Figures:
        return {"fresh process": import_milliseconds("tinygrad")}
