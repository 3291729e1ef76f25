"""What a run of a phase says in a trace: its graph, its passes, and every rewrite of each."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.rewrite.trace import PassTrace
from weft.rewrite.trace_file import TraceFile, current

if TYPE_CHECKING:
    from weft.rewrite.phase import Pass, PassReport, Phase

# Of the rewrites of one pass; the counts of its rules are always whole.
MOST_REWRITES: Final = 2000


class PhaseRecord:
    """What is written about one run of a phase."""

    def __init__(self, phase: Phase, root: UOp, trace: TraceFile) -> None:
        self.number = trace.thread.phase = trace.number()
        self._trace = trace
        self._start = time.perf_counter()
        self._passes: list[dict[str, Any]] = []
        title = root.arg[0] if root.op == Op.KERNEL else _outputs(len(root.src))
        self._fields = {"phase": phase.name, "title": title, "given": trace.graph(root)}

    def add(self, step: Pass, report: PassReport, root: UOp, rewrites: PassTrace | None) -> None:
        """Note a pass that has run."""
        fields: dict[str, Any] = {"name": step.name, "because": step.because}
        if report.skipped:
            fields["skipped"] = True
        else:
            fields["start"] = self._trace.at(time.perf_counter() - report.seconds)
            fields["us"] = round(report.seconds * 1e6, 1)
        if report.changed:
            fields["root"] = self._trace.graph(root)
        if report.rules:
            fields["rules"] = dict(report.rules.most_common())
        if rewrites is not None and rewrites.steps:
            fields["rewrites"] = self._rewrites(rewrites)
        self._passes.append(fields)

    def _rewrites(self, rewrites: PassTrace) -> list[list[Any]]:
        """Rule, node before, node after and reason of each rewrite, in their order."""
        trace, found = self._trace, []
        for step in rewrites.steps[:MOST_REWRITES]:
            before, after = trace.graph(step.before), trace.graph(step.after)
            if before is None or after is None:
                break
            row = [trace.rule(rewrites.name, step.rule.name), before, after]
            found.append([*row, step.why] if step.rule.why else row)
        return found

    def write(self) -> None:
        trace = self._trace
        start, end = trace.at(self._start), trace.now()
        trace.thread.phase = self.number
        trace.write(
            "phase", id=self.number, start=start, end=end, **self._fields, passes=self._passes
        )


def _outputs(count: int) -> str:
    return "1 output" if count == 1 else f"{count} outputs"


def begin_record(phase: Phase, root: UOp) -> PhaseRecord | None:
    """A record of a phase that begins, where a trace is written."""
    trace = current()
    return None if trace is None else PhaseRecord(phase, root, trace)
