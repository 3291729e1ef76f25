"""The code generator: a kernel, a target and opts become a program.

`generate` is a pure function. The engine calls it, caches what it gives by the text of what it
takes, and hands the result to a renderer. `phases.py` lists what happens in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from weft.codegen.analysis.estimate import estimate
from weft.codegen.context import CodegenContext
from weft.codegen.opts.table import Opt
from weft.codegen.phases import CODEGEN, SHAPED
from weft.ir.build import Size, size_of
from weft.ir.early import bytes_of, early_slots, loads_at_start
from weft.ir.ops import Op
from weft.ir.program import Estimate, Parameter, Program, TensorMap, dynamic_bytes
from weft.ir.spec.program import DYNAMIC
from weft.ir.uop import UOp
from weft.ir.views import behind
from weft.ir.walk import topological
from weft.rewrite.phase import PassReport, Watch, run_phase
from weft.target.compute import Simt
from weft.target.target import Target


def generate(
    kernel: UOp,
    target: Target,
    opts: tuple[Opt, ...] | None = None,
    reports: list[PassReport] | None = None,
    watch: Watch | None = None,
    taken: list[Opt] | None = None,
) -> Program:
    """The program of a kernel; the heuristic chooses the opts that are not given.

    What each pass did, and how long it took, is appended to `reports`, and the opts to `taken`;
    `watch` is called with each pass and what it gives.
    """
    context = CodegenContext(target, opts)
    instructions = run_phase(CODEGEN, kernel, context, reports, watch)
    if taken is not None:
        taken += context.chosen
    return program_of(kernel.arg[0], topological(kernel), instructions, context, estimate(kernel))


def program_of(
    name: str, nodes: list[UOp], instructions: UOp, context: CodegenContext, cost: Estimate
) -> Program:
    """The program of some instructions; `nodes` are those of the kernel that they are made of."""
    parameters, compute = _parameters(nodes), context.target.compute
    groups = _sizes(instructions, context, "group")
    threads = tuple(s for s in _sizes(instructions, context, "thread") if isinstance(s, int))
    waits = isinstance(compute, Simt) and compute.starts_early
    loads = loads_at_start(instructions, parameters, groups, threads) if waits else {}
    return Program(
        name=name,
        target=context.target.name,
        instructions=instructions,
        parameters=parameters,
        variables=_variables(nodes),
        groups=groups,
        threads=threads,
        estimate=replace(cost, rate=_matrix_rate(instructions, context.target)),
        dynamic_bytes=dynamic_bytes(_dynamic(instructions)),
        maps=_maps(instructions, parameters),
        waits=waits,
        early=early_slots(instructions, parameters, loads),
    )


def _matrix_rate(instructions: UOp, target: Target) -> float:
    """The operations per second of the matrix unit that a program uses; 0 where it uses none."""
    if not instructions.ops >> Op.MMA & 1:
        return 0.0
    pairs = {node.arg[0] for node in instructions.src if node.op == Op.MMA}
    return max(
        unit.rate
        for unit in target.matrix_units
        for left, right in unit.inputs
        if (left.name, right.name) in pairs
    )


def _dynamic(instructions: UOp) -> list[UOp]:
    """The memories that a launch asks for."""
    if not instructions.ops >> Op.COPY_BOX & 1:
        return []
    nodes = topological(instructions)
    return [node for node in nodes if node.op == Op.MEMORY and node.arg[1] == DYNAMIC]


def _maps(instructions: UOp, parameters: Sequence[Parameter]) -> tuple[TensorMap, ...]:
    """The arguments that are copied in boxes, in the order in which they are passed."""
    position = {parameter.slot: at for at, parameter in enumerate(parameters)}
    return tuple(
        TensorMap(position[node.src[0].arg[0]], node.dtype.itemsize, *node.arg)
        for node in instructions.src
        if node.op == Op.TENSOR_MAP
    )


def before_opts(kernel: UOp, target: Target) -> UOp:
    """The kernel that opts speak of, after the passes in front of `choose-opts`."""
    return run_phase(SHAPED, kernel, CodegenContext(target))


def _parameters(nodes: list[UOp]) -> tuple[Parameter, ...]:
    """The memory arguments, by slot."""
    found = {node.arg[0]: node for node in nodes if node.op == Op.PARAM}
    written = {behind(node.src[0].src[0]) for node in nodes if node.op == Op.STORE}
    addresses = {node.src[0] for node in nodes if node.op == Op.STORE}
    read = {behind(node.src[0]) for node in nodes if node.op == Op.INDEX and node not in addresses}
    read |= {behind(node.src[0].src[0]) for node in nodes if node.op == Op.LOAD}
    return tuple(
        Parameter(slot, node.dtype, node in written, node in read, bytes_of(node))
        for slot, node in sorted(found.items())
    )


def _variables(nodes: list[UOp]) -> tuple[UOp, ...]:
    return tuple(sorted((n for n in nodes if n.op == Op.VARIABLE), key=lambda node: node.arg))


def _sizes(instructions: UOp, context: CodegenContext, kind: str) -> tuple[Size, ...]:
    """The extents of the hardware counters of a kind, axis by axis."""
    found: dict[int, Size] = {}
    for node in instructions.src:
        if node.op == Op.SPECIAL and node.arg[0] == kind:
            found[node.arg[1]] = size_of(context.extents[node.arg])
    return tuple(found.get(axis, 1) for axis in range(max(found, default=-1) + 1))
