"""`VIZ=1`: each phase that runs is written to a trace file, which `weft.viz` makes a page of.

The file has one line of JSON for each run of a phase: its name, what it was given, and for each
pass the time, the rules that fired and the graph as text, where it changed. A process writes one
new file, `weft-trace-PID-….jsonl`, in the folder where it was started.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from weft.ir.ops import Op
from weft.ir.text import dump
from weft.ir.uop import UOp

if TYPE_CHECKING:
    from weft.rewrite.phase import Pass, PassReport, Phase

_started: list[str] = []


def trace_file() -> str:
    """The file of this process; it is named at exit, when it has been written to."""
    if not _started:
        from tempfile import mkstemp  # slow to import, and not needed without VIZ

        # A name that nobody can foresee, and no link: the folder may be one that others write to.
        handle, path = mkstemp(".jsonl", f"weft-trace-{os.getpid()}-", os.getcwd())
        os.close(handle)
        _started.append(path)
        atexit.register(_say, path)
    return _started[0]


def _say(path: str) -> None:
    print(f"VIZ: python -m weft.viz {path}", file=sys.stderr)


class PhaseRecord:
    """What is written about one run of a phase."""

    def __init__(self, phase: Phase, root: UOp) -> None:
        title = root.arg[0] if root.op == Op.KERNEL else f"{len(root.src)} outputs"
        self._line: dict[str, Any] = {"phase": phase.name, "title": title, "given": dump(root)}
        self._passes: list[dict[str, Any]] = []
        self._line["passes"] = self._passes

    def add(self, step: Pass, report: PassReport, root: UOp) -> None:
        """Note a pass that has run."""
        self._passes.append(
            {
                "name": step.name,
                "because": step.because,
                "seconds": report.seconds,
                "skipped": report.skipped,
                "visits": report.visits,
                "rules": dict(report.rules.most_common()) if report.rules else {},
                "text": dump(root) if report.changed else None,
            }
        )

    def write(self) -> None:
        with open(trace_file(), "a", encoding="utf-8") as file:
            file.write(json.dumps(self._line) + "\n")
