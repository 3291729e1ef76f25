"""Compiling from text: a graph as any pass left it, taken on from there by the rest of the list.

`weft compile` reads a graph in text form and calls `resume`. The steps are the passes of the
schedule, those of codegen for each kernel, and `render`. What stands before a step is checked by
the spec of the pass before it, so a mistake in the text is named before anything runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from weft.codegen.context import CodegenContext
from weft.codegen.generate import program_of
from weft.codegen.opts.table import Opt
from weft.codegen.phases import CODEGEN
from weft.engine.targets import renderer_of
from weft.ir.ops import Op
from weft.ir.program import Estimate
from weft.ir.spec.spec import Spec, verify
from weft.ir.text import dump
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.rewrite.phase import Pass, Phase, run_phase
from weft.schedule.context import ScheduleContext
from weft.schedule.phases import SCHEDULE
from weft.schedule.schedule import schedule_body
from weft.support.errors import InternalError, UnknownName, UsageError
from weft.support.message import nearest
from weft.target.target import Target

RENDER: Final = "render"
CHOOSE: Final = "choose-opts"
STEPS: Final = (
    *(step.name for step in SCHEDULE.passes),
    *(step.name for step in CODEGEN.passes),
    RENDER,
)
_FIRST_OF_CODEGEN: Final = STEPS.index(CODEGEN.passes[0].name)


class Result(NamedTuple):
    """What one step gives: for the passes of codegen and `render`, of one kernel."""

    step: str
    kernel: str  # "" for a pass of the schedule
    text: str


def resume(
    root: UOp,
    target: Target,
    start: str | None = None,
    stop: str = RENDER,
    opts: tuple[Opt, ...] | None = None,
) -> Iterator[Result]:
    """Run the steps from `start` to `stop`, both included, and yield what each of them gives."""
    first = position(start) if start else position_of(root)
    last = position(stop)
    if last < first:
        raise UsageError(
            f"compile: {STEPS[last]} comes before {STEPS[first]}",
            rule="the passes run in the order " + ", ".join(STEPS),
        )
    if opts is not None and not first <= STEPS.index(CHOOSE) <= last:
        raise UsageError(
            f"compile: opts are given, and {CHOOSE} is not run",
            rule=f"{CHOOSE} is the pass that applies opts",
        )
    _require_level(root, first, target)
    kernels = [root]
    if first < _FIRST_OF_CODEGEN:
        passes = SCHEDULE.passes[first : last + 1]
        context = ScheduleContext(root, target, lambda body: schedule_body(body, target))
        for step, given in _steps(passes, root, context):
            yield Result(step.name, "", dump(given))
            kernels = [given]
    if last >= _FIRST_OF_CODEGEN:
        if _is_schedule(kernels[0]):
            kernels = list(dict.fromkeys(call.arg for call in kernels[0].src))
        for kernel in kernels:
            yield from _lowered(kernel, target, opts, max(first, _FIRST_OF_CODEGEN), last)


def position(name: str) -> int:
    """Which step a name is."""
    if name in STEPS:
        return STEPS.index(name)
    near = nearest(name, STEPS)
    raise UnknownName(
        f"compile: there is no pass {name!r}",
        rule="the passes are " + ", ".join(STEPS),
        fix=f"write {near}" if near else "",
    )


def position_of(root: UOp) -> int:
    """The first step for a graph, where nobody says which."""
    if root.op == Op.LINEAR and not _is_schedule(root):
        return STEPS.index(RENDER)
    return 0 if root.op == Op.SINK else _FIRST_OF_CODEGEN


def _is_schedule(root: UOp) -> bool:
    """Whether a LINEAR is one of calls, not of instructions."""
    return root.op == Op.LINEAR and bool(root.src) and root.src[0].op == Op.CALL


def _steps(passes: tuple[Pass, ...], root: UOp, context: object) -> Iterator[tuple[Pass, UOp]]:
    """Each pass with what it gives."""
    for step in passes:
        root = run_phase(Phase(step.name, (step,)), root, context)
        yield step, root


def _lowered(
    kernel: UOp, target: Target, opts: tuple[Opt, ...] | None, first: int, last: int
) -> Iterator[Result]:
    """The passes of codegen on one kernel, and its source."""
    name = str(kernel.arg[0]) if kernel.op == Op.KERNEL else "kernel"
    context = CodegenContext(target, opts)
    for node in topological(kernel):
        if node.op == Op.SPECIAL:  # as `bind-hardware` would have noted
            context.extents.setdefault(node.arg, node.src[0])
    root = kernel
    passes = CODEGEN.passes[first - _FIRST_OF_CODEGEN : last + 1 - _FIRST_OF_CODEGEN]
    for step, given in _steps(passes, kernel, context):
        yield Result(step.name, name, dump(given))
        root = given
    if STEPS[last] == RENDER:
        program = program_of(name, topological(root), root, context, Estimate())
        yield Result(RENDER, name, renderer_of(target)(program, target))


def _require_level(root: UOp, first: int, target: Target) -> None:
    """Raise where a graph is not what stands before a step."""
    is_kernels = _is_schedule(root) and first == _FIRST_OF_CODEGEN
    spec = SCHEDULE.gives if is_kernels else _spec_before(first, target)
    if spec is None:
        return
    try:
        verify(root, spec)
    except InternalError as error:
        facts = [row for row in error.facts if row[0] != "pass"]
        raise UsageError(
            f"compile: the text is not what comes before {STEPS[first]}: {error.what}",
            facts=facts,
            rule=f"{STEPS[first]} takes a {spec.scope}",
            fix="name the pass after the one that printed it with --from",
        ) from None


def _spec_before(first: int, target: Target) -> Spec | None:
    if first == 0:
        return SCHEDULE.takes
    if first <= _FIRST_OF_CODEGEN - 1:
        return SCHEDULE.passes[first - 1].spec(None)
    if first == _FIRST_OF_CODEGEN:
        return CODEGEN.takes
    return CODEGEN.passes[first - _FIRST_OF_CODEGEN - 1].spec(CodegenContext(target))
