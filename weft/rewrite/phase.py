"""Phases: lists of passes as data, and the one function that runs them.

A pass says why it is there and which ops it needs to have anything to do. `run_phase` runs the
passes in order, skips those whose ops are absent, checks the specs when `SPEC` is set, and writes
down what each one did; with `TRACE`, `VIZ` or inside `tracing()` also which rules fired how often.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from weft.ir.collector import CollectorPaused
from weft.ir.spec.spec import Spec, verify
from weft.ir.uop import UOp
from weft.rewrite import trace
from weft.rewrite.record import begin_record
from weft.rewrite.trace_file import wants_graphs
from weft.support.settings import settings


class SpecFor(NamedTuple):
    """A spec that depends on the context of a phase, such as on what its target can do."""

    scope: str
    of: Callable[[Any], Spec]


class Pass(NamedTuple):
    """One step from graph to graph. `run` receives the graph and the phase's context."""

    name: str
    run: Callable[[UOp, Any], UOp]
    because: str
    needs: frozenset[int] | set[int] = frozenset()
    gives: Spec | SpecFor | None = None

    def spec(self, context: Any) -> Spec | None:
        """What is legal after this pass."""
        return self.gives.of(context) if isinstance(self.gives, SpecFor) else self.gives


class Phase(NamedTuple):
    """A named list of passes, with what is legal before and after."""

    name: str
    passes: tuple[Pass, ...]
    takes: Spec | None = None
    gives: Spec | None = None


class PassReport(NamedTuple):
    """What one pass did. Visits and rules are counted only while tracing."""

    name: str
    seconds: float
    skipped: bool
    changed: bool
    visits: int = 0
    rules: Counter[str] | None = None

    def __str__(self) -> str:
        if self.skipped:
            return f"  {self.name:<28} skipped: nothing for it to do"
        most = self.rules.most_common(6) if self.rules else []
        fired = ", ".join(f"{name} {count}" for name, count in most)
        state = "changed" if self.changed else "unchanged"
        counts = f"  {self.visits} visits  {fired}" if self.visits else ""
        return f"  {self.name:<28} {self.seconds * 1e3:8.2f} ms  {state}{counts}"


_BIT: Final = (1).__lshift__

# Called with each pass and the graph after it.
Watch = Callable[[Pass, UOp], None]


def run_phase(
    phase: Phase,
    root: UOp,
    context: Any = None,
    reports: list[PassReport] | None = None,
    watch: Watch | None = None,
) -> UOp:
    """The graph after all passes of a phase; what they did is appended to `reports`."""
    if settings.SPEC and phase.takes is not None:
        verify(root, phase.takes, pass_name=f"before {phase.name}")
    if settings.TRACE and trace.active() is None:
        with trace.tracing() as current:
            root = _run(phase, root, context, reports, watch)
        print(current)
    elif settings.VIZ and trace.active() is None and wants_graphs():
        with trace.tracing(remembers=True):
            root = _run(phase, root, context, reports, watch)
    else:
        root = _run(phase, root, context, reports, watch)
    if settings.SPEC and phase.gives is not None:
        verify(root, phase.gives, pass_name=phase.name)
    return root


def _run(
    phase: Phase,
    root: UOp,
    context: Any,
    reports: list[PassReport] | None,
    watch: Watch | None,
) -> UOp:
    record = begin_record(phase, root) if settings.VIZ else None
    has_specs = settings.SPEC
    is_watched = record is not None or reports is not None or trace.active() is not None
    with CollectorPaused():
        for step in phase.passes:
            # Written out, because every kernel goes through every pass.
            if not step.needs or root.ops & sum(map(_BIT, step.needs)):
                if is_watched:
                    root, report, rewrites = _run_pass(step, root, context)
                else:
                    root = step.run(root, context)
            elif is_watched:
                report, rewrites = PassReport(step.name, 0.0, skipped=True, changed=False), None
            if record is not None:
                record.add(step, report, root, rewrites)
            if reports is not None:
                reports.append(report)
            if has_specs and (spec := step.spec(context)) is not None:
                verify(root, spec, pass_name=step.name)
            if watch is not None:
                watch(step, root)
    if record is not None:
        record.write()
    return root


def _run_pass(
    step: Pass, root: UOp, context: Any
) -> tuple[UOp, PassReport, trace.PassTrace | None]:
    start = time.perf_counter()
    active = trace.active()
    if active is None:
        result = step.run(root, context)
        seconds = time.perf_counter() - start
        return result, PassReport(step.name, seconds, False, result is not root), None
    with active.named(step.name) as record:
        result = step.run(root, context)
    seconds = time.perf_counter() - start
    report = PassReport(
        step.name, seconds, False, result is not root, record.visits, record.counts
    )
    return result, report, record
