"""What `TensorChain` makes of the values between two products: few instructions for each score.

Threads compute them while matrix units wait, or the other way round, so each counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from weft.codegen.analysis.loops import rebuilt
from weft.codegen.analysis.tensor_chains import ROUNDED
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.reduction.joined import is_joined, references
from weft.ir.uop import UOp, make
from weft.ir.walk import map_graph, substitute, topological

PER_LOG_2: Final = 1.4426950408889634


class ScoreSteps:
    """Values of scores in few instructions each, where that rounds no more than a score is.

    before: exp((x - m) * c)
    after:  exp2(x * (c * log2(e)) + where(m == -inf, 0, -m * (c * log2(e))))

    What stays in registers is not rounded on the way; a mask is asked once for each value. Weights
    of a block without keys are 0 then, and not NaN. A row without any is NaN at the end, as it is
    where nothing is guarded.
    """

    def __init__(self) -> None:
        self.guarded: set[UOp] = set()  # maxima of blocks

    def fewer(self, node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        new = rebuilt(node, made, {})
        if new.dtype is not dtypes.float32 or not new.ops >> Op.CONTRACT & 1:
            return new
        if new.op == Op.DIV and new.src[1].op == Op.CONST and new.src[1].arg:
            return _scaled(new.src[0], 1.0 / float(new.src[1].arg))
        if new.op == Op.MUL and new.src[1].op == Op.CONST:
            return _scaled(new.src[0], float(new.src[1].arg))
        if new.op == Op.CAST and _is_rounded_score(new.src[0]):
            return new.src[0].src[0]
        if new.op == Op.WHERE:
            return _asked_once(new)
        exponent, scale = _exponent(new)
        if new.op == Op.EXP and exponent.op == Op.ADD:
            x, y = (self.in_base_2(each, scale) for each in exponent.src)
            return make(Op.EXP2, new.dtype, (x + y,))
        return new

    def in_base_2(self, node: UOp, scale: float) -> UOp:
        """A part of the exponent of a power of e, times a number, as that of a power of 2."""
        scaled = _scaled(node, scale)
        if node.op != Op.NEG or node.src[0].op not in (Op.REDUCE, Op.LOAD):
            return scaled
        if node.src[0].op == Op.REDUCE:
            self.guarded.add(node.src[0])
        return node.src[0].equal(-math.inf).where(scaled.const_like(0), scaled)

    def marked(self, node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        """NaN for what is joined of rows without keys; what scales a part is a power of 2."""
        new = rebuilt(node, made, {})
        if not is_joined(node):
            return new
        join = map_graph(new.arg[0], lambda part, known: _power(rebuilt(part, known, {})))
        new = make(new.op, new.dtype, new.src, (join, *new.arg[1:]))
        if references(node)[0].src[0] not in self.guarded:
            return new
        return references(new)[0].equal(-math.inf).where(new.const_like(math.nan), new)


def _scaled(node: UOp, factor: float) -> UOp:
    """A value times a factor, which joins one that it has; what is -inf stays that."""
    if node.op == Op.MUL and node.src[1].op == Op.CONST:
        return _scaled(node.src[0], float(node.src[1].arg) * factor)
    is_masked = node.op == Op.WHERE and node.src[2].op == Op.CONST and factor > 0
    if is_masked and node.src[2].arg in (0.0, -math.inf) and _has_factor(node.src[1]):
        (value, own), (condition, _, other) = node.src[1].src, node.src
        masked = make(Op.WHERE, node.dtype, (condition, value, other))
        return _scaled(masked, float(own.arg) * factor)
    return node * factor


def _has_factor(node: UOp) -> bool:
    return node.op == Op.MUL and node.src[1].op == Op.CONST and bool(node.src[1].arg > 0)


def _exponent(power: UOp) -> tuple[UOp, float]:
    """What the exponent of a power of e is, and what it is multiplied by for a power of 2."""
    if power.op == Op.EXP and _has_factor(power.src[0]):
        return power.src[0].src[0], PER_LOG_2 * float(power.src[0].src[1].arg)
    return (power.src or (power,))[0], PER_LOG_2


def _power(node: UOp) -> UOp:
    """A power of e as one of 2."""
    if node.op != Op.EXP or node.dtype is not dtypes.float32:
        return node
    exponent, scale = _exponent(node)
    return make(Op.EXP2, node.dtype, (exponent * scale,))


def _is_rounded_score(node: UOp) -> bool:
    """Whether a score, or the slope of a weight, is rounded to be computed with again."""
    is_small = node.op == Op.CAST and node.dtype in ROUNDED
    return is_small and node.src[0].dtype is dtypes.float32


def _asked_once(node: UOp) -> UOp:
    """A masked value in which the same mask is not asked again.

    before: where(c, exp(where(c, x, -inf)), 0.0)
    after:  where(c, exp(x), 0.0)
    """
    condition, value, other = node.src
    inside = [
        each for each in topological(value) if each.op == Op.WHERE and each.src[0] is condition
    ]
    known = {each: each.src[1] for each in inside}
    return make(Op.WHERE, node.dtype, (condition, substitute(value, known), other))
