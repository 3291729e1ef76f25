"""The pass that rewrites ops which a target lacks into ops that it has.

In: a lowered kernel without small floats that the target lacks. Out: the same with native ops
only, but for those of 64-bit integers, which come next. Which rules are on follows from the
target's data; a rule's result is rewritten again, so a function may be written with another one
that is lacking too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

from weft.codegen.context import CodegenContext
from weft.codegen.decompose import (
    constant_division,
    exponentials,
    float_remainder,
    integers,
    rounding,
    trigonometry,
)
from weft.codegen.decompose.float_parts import LAYOUTS, like
from weft.ir.dtypes import ANY, FLOAT, dtypes
from weft.ir.ops import ELEMENTWISE, Op, mask_of, name
from weft.ir.uop import UOp, make
from weft.ir.walk import topological
from weft.rewrite.driver import rewrite
from weft.rewrite.pattern import op_
from weft.rewrite.rule import Rule
from weft.rewrite.ruleset import RuleSet, rules
from weft.support.errors import NotSupported
from weft.target.target import Target

Function = Callable[[UOp], UOp | None]


def _of_float(function: Callable[..., UOp]) -> Function:
    """A function of floats, computed in float32 where the dtype is smaller."""

    def expanded(node: UOp) -> UOp | None:
        if node.dtype.kind != FLOAT:
            return None
        if node.dtype.scalar in LAYOUTS:
            return function(*node.src)
        wide = like(node, dtypes.float32)
        src = tuple([make(Op.CAST, wide, (source,)) for source in node.src])
        return make(Op.CAST, node.dtype, (make(node.op, wide, src),))

    return expanded


def _truncated_remainder(node: UOp) -> UOp | None:
    if node.dtype.kind == FLOAT:
        return _of_float(float_remainder.remainder)(node)
    return integers.truncated_remainder(node)


def _power(node: UOp) -> UOp | None:
    if node.dtype.kind == FLOAT:
        return _of_float(exponentials.power)(node)
    return exponentials.integer_power(*node.src)


def _not_greater(node: UOp) -> UOp:
    x, y = node.src
    return (x < y) | x.equal(y) if x.dtype.kind == FLOAT else ~(y < x)


# What stands for an op where it is lacking.
FUNCTIONS: Final[dict[int, Function]] = {
    Op.EXP: _of_float(exponentials.exponential),
    Op.EXP2: _of_float(exponentials.exponential_2),
    Op.LOG: _of_float(exponentials.logarithm),
    Op.LOG2: _of_float(exponentials.logarithm_2),
    Op.SIN: _of_float(trigonometry.sine),
    Op.COS: _of_float(trigonometry.cosine),
    Op.TANH: _of_float(exponentials.hyperbolic_tangent),
    Op.ERF: _of_float(exponentials.error_function),
    Op.POW: _power,
    Op.LOGADD: _of_float(exponentials.logarithm_of_sum),
    Op.FLOOR: rounding.round_down,
    Op.TRUNC: rounding.truncate,
    Op.ROUND: rounding.round_to_even,
    Op.MAX: rounding.greater,
    Op.MIN: rounding.lesser,
    Op.FLOORDIV: integers.floor_quotient,
    Op.FLOORMOD: integers.floor_remainder,
    Op.TRUNCMOD: _truncated_remainder,
    Op.LESS_EQUAL: _not_greater,
    Op.DOT_BYTES: integers.dot_of_bytes,
}


def decompose(kernel: UOp, context: CodegenContext) -> UOp:
    """Write the kernel with ops that the target has."""
    target = context.target
    return rewrite(kernel, rules_of(target))


def rules_of(target: Target) -> RuleSet:
    """The rules of a target."""
    return rules_for(target.native_ops, target.has_slow_division, target.float32_ops)


@cache
def rules_for(
    native_ops: frozenset[int],
    has_slow_division: bool = False,
    float32_ops: frozenset[int] = frozenset(),
) -> RuleSet:
    """The rules of every target that has these ops, and further ones for float32 alone."""
    chosen = [
        _rule("shift-or-truncate-quotient", Op.FLOORDIV, integers.simpler_quotient),
        _rule("mask-or-truncate-remainder", Op.FLOORMOD, integers.simpler_remainder),
    ]
    if has_slow_division:
        chosen += [
            _rule("multiply-for-quotient", Op.TRUNCDIV, constant_division.multiplied_quotient),
            _rule("multiply-for-remainder", Op.TRUNCMOD, constant_division.multiplied_remainder),
        ]
    for op, function in FUNCTIONS.items():
        if op not in native_ops:
            function = _but_float32(function) if op in float32_ops else function
            chosen.append(_rule(f"decompose-{name(op).lower().replace('_', '-')}", op, function))
        elif op == Op.DOT_BYTES:
            chosen.append(_rule("decompose-dot-bytes", op, _but_words(function)))
    return rules("decompose", *chosen)


def _but_float32(function: Function) -> Function:
    """A function that leaves float32 to the renderer."""

    def expanded(node: UOp) -> UOp | None:
        return None if node.dtype.scalar is dtypes.float32 else function(node)

    return expanded


def _but_words(function: Function) -> Function:
    """A function that leaves words of 32 bits to the renderer."""

    def expanded(node: UOp) -> UOp | None:
        return None if node.dtype.scalar is dtypes.int32 else function(node)

    return expanded


def _rule(rule_name: str, op: int, function: Function) -> Rule:
    def expanded(node: UOp) -> UOp | None:
        return function(node)

    return Rule(rule_name, op_(op), None, expanded, None, ANY, "", ())


def require_native(kernel: UOp, target: Target) -> None:
    """Raise where a kernel computes what its target has no instructions for."""
    lacking = ELEMENTWISE - target.written_ops
    if kernel.ops & mask_of(*lacking):
        names = [name(op) for op in sorted(lacking) if kernel.ops >> op & 1]
        raise NotSupported(
            f"{', '.join(names)} on {target.name}",
            rule="an op that a target lacks has to be written with ops that it has",
        )
    computed = {
        node.dtype: node.op
        for node in topological(kernel, enter=lambda node: node.op != Op.PARAM)
        if node.op in ELEMENTWISE and node.op != Op.BITCAST
    }
    for dtype, op in computed.items():
        is_rounded = op == Op.CAST and dtype.scalar in target.rounded_dtypes
        if dtype.scalar not in target.native_dtypes and not is_rounded:
            raise NotSupported(
                f"{dtype.scalar.name} on {target.name}",
                facts=[("op", name(op))],
                rule="the target computes in "
                + ", ".join(sorted(d.name for d in target.native_dtypes)),
            )
