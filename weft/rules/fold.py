"""Constant folding: an op on constants is the constant the program would compute."""

from __future__ import annotations

import operator
from typing import Final

from weft.ir.ops import BINARY, COMPARE, INFO, UNARY, Op
from weft.ir.scalar import evaluate
from weft.ir.uop import UOp, const
from weft.rewrite.pattern import Pattern, node_
from weft.rewrite.rule import Rule, structural
from weft.rewrite.ruleset import rules

_FOLDED = sorted(UNARY | BINARY | COMPARE | {Op.CAST, Op.BITCAST})
_PARTIAL: Final = frozenset((Op.SHL, Op.SHR, Op.POW))
_ARG: Final = operator.attrgetter("arg")


def fold_constants(node: UOp) -> UOp | None:
    """Compute an op whose sources are all constants.

    before: const(7) // const(2)
    after:  const(3)
    """
    if node.dtype.lanes != node.src[0].dtype.lanes:
        return None
    if node.op in _PARTIAL and _is_undefined(node):
        return None
    values = tuple(map(_ARG, node.src))
    scalar = evaluate(node.op, node.dtype.scalar, values, node.src[-1].dtype.scalar)
    return const(node.dtype, scalar)


def _is_undefined(node: UOp) -> bool:
    """Left for the run to complain about: a negative shift or exponent."""
    is_partial = node.op != Op.POW or node.dtype.is_int
    return is_partial and bool(node.src[1].arg < 0)


def _constant_sources(op: int) -> Pattern:
    return node_(op, *[Pattern(Op.CONST, ()) for _ in range(INFO[op].least)])


def _folding(op: int) -> Rule:
    return structural(_constant_sources(op))(fold_constants)


FOLD_RULES = rules("fold", *[_folding(op) for op in _FOLDED])
