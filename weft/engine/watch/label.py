"""What a kernel computes, in few words: `matmul.max.exp`, from the ops of its body.

Names of programs are made of loops, so that equal loops have equal names; this one is for people.
"""

from __future__ import annotations

from typing import Final

from weft.ir.dtypes import dtypes
from weft.ir.ops import INFO, Op, OpClass
from weft.ir.reduction.contraction import is_contraction
from weft.ir.uop import UOp
from weft.ir.walk import topological

_MOST_WORDS: Final = 4
_REDUCTIONS: Final = {Op.ADD: "sum", Op.MUL: "prod", Op.MAX: "max", Op.MIN: "min"}
_SCANS: Final = {Op.ADD: "cumsum", Op.MUL: "cumprod", Op.MAX: "cummax", Op.MIN: "cummin"}
# Ops that say what a kernel is for, before those which are in most kernels.
_TELLING: Final = frozenset(
    (Op.EXP, Op.EXP2, Op.LOG, Op.LOG2, Op.SIN, Op.COS, Op.TANH, Op.ERF, Op.SQRT, Op.POW, Op.LOGADD)
)
_PLAIN: Final = {
    Op.DIV: "div",
    Op.WHERE: "where",
    Op.MUL: "mul",
    Op.ADD: "add",
    Op.NEG: "neg",
    Op.CAST: "cast",
}
_VALUES: Final = (
    OpClass.UNARY,
    OpClass.BINARY,
    OpClass.TERNARY,
    OpClass.COMPARE,
    OpClass.CONVERT,
)


def label_of(kernel: UOp) -> str:
    """The name of what a kernel computes; the order is that of the computation.

    A kernel that computes nothing copies, or fills memory with a constant.
    """
    if kernel.op == Op.PROGRAM:
        return "custom"
    telling: dict[str, None] = {}
    plain: set[int] = set()
    loads = False
    for node in topological(kernel):
        op = node.op
        loads |= op == Op.LOAD
        if word := _word(node):
            telling[word] = None
        elif INFO[op].op_class in _VALUES and node.dtype is not dtypes.index:
            plain.add(op)
    words = list(telling) or [word for op, word in _PLAIN.items() if op in plain][:2]
    if not words and plain:
        words.append(_name(min(plain)))
    if len(words) > _MOST_WORDS:
        words = [*words[: _MOST_WORDS - 1], "…"]
    return ".".join(words) or ("copy" if loads else "fill")


def _word(node: UOp) -> str:
    if node.op == Op.REDUCE:
        if is_contraction(node):
            return "matmul"
        return _REDUCTIONS.get(node.arg[0]) or _name(node.arg[0])
    if node.op == Op.SCAN:
        return _SCANS.get(node.arg[0], "scan")
    if node.op == Op.SCATTER:
        return "scatter"
    return _name(node.op) if node.op in _TELLING else ""


def _name(op: int) -> str:
    return INFO[op].name.lower()
