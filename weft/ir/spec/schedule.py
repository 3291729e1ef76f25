"""The invariants of a schedule: a LINEAR of CALLs of kernels on memory."""

from __future__ import annotations

from typing import Final

from weft.ir.dtypes import INDEX
from weft.ir.ops import Op
from weft.ir.results import FILLING
from weft.ir.spec.common import has_types
from weft.ir.spec.spec import Spec, Verdict, row
from weft.ir.uop import UOp
from weft.ir.walk import topological

_ARITHMETIC: Final = (Op.ADD, Op.MUL, Op.NEG, Op.FLOORDIV, Op.FLOORMOD, Op.MAX, Op.MIN)


def _calls_only(node: UOp) -> Verdict:
    return all(source.op == Op.CALL for source in node.src)


def _plan(node: UOp) -> Verdict:
    if node.arg is None or has_types(node.arg, int):
        return node.arg is None or bool(node.arg[0] >= 0)
    if not has_types(node.arg, int, tuple):
        return "the arg is neither (first temporary,) nor (bytes, offsets)"
    size, offsets = node.arg
    if any(not has_types(pair, int, int) for pair in offsets):
        return "an offset is not (slot, offset)"
    slots = [slot for slot, _ in offsets]
    if slots != sorted(set(slots)):
        return "the slots are not in order, each once"
    return all(0 <= offset < size for _, offset in offsets) or "an offset is outside the arena"


def _calls_kernel(node: UOp) -> Verdict:
    return node.arg.op in FILLING


def _has_parameters(node: UOp) -> Verdict:
    if node.arg.op != Op.KERNEL:
        return True
    slots = {each.arg[0] for each in topological(node.arg) if each.op == Op.PARAM}
    return slots == set(range(len(node.src))) or f"the kernel has the slots {sorted(slots)}"


def _on_memory(node: UOp) -> Verdict:
    return all(source.op == Op.PARAM for source in node.src)


SCHEDULE_SPEC: Final = Spec(
    "schedule",
    (
        row("a schedule is a list of calls", Op.LINEAR, _calls_only),
        row("temporaries have slots, and by a plan offsets in an arena", Op.LINEAR, _plan),
        row("a call of a schedule runs a kernel", Op.CALL, _calls_kernel),
        row("a kernel runs on memory", Op.CALL, _on_memory),
        row("a kernel has a parameter for each argument", Op.CALL, _has_parameters),
        row("a memory argument has a slot", Op.PARAM, lambda node: node.arg[0].__class__ is int),
        row(
            "sizes are numbers, variables and their arithmetic",
            (Op.CONST, Op.VARIABLE, *_ARITHMETIC),
            lambda node: node.dtype.kind == INDEX,
        ),
    ),
)
