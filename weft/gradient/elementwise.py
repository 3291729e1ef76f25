"""Gradients of the elementwise ops, in the order of the op table.

A formula takes a node and the gradient `g` of its result, and gives one contribution per source,
in the shape of the result; None means that the source has no gradient. `ELEMENTWISE_RULES` holds
the formulas as rules: what belongs to a scalar source, which stands with any shape, is summed.

At kinks the formulas follow torch: MAX and MIN share a tie evenly, and POW has no slope at a
zero exponent. Where a formula has a branch that must not be taken, the arguments of that branch
are made harmless first, so that its own derivative is not a NaN either.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Final

from weft.ir.build import reduce_axes, where
from weft.ir.dtypes import Scalar
from weft.ir.movement import reshape, zeros_like
from weft.ir.ops import Op
from weft.ir.shapes import Shape, shape_of
from weft.ir.uop import UOp, complex_from, make

Parts = tuple[UOp | None, ...]
SlopeRule = Callable[[UOp, UOp], Parts]


def _on(op: int, *sources: UOp) -> UOp:
    """An elementwise node of the sources' dtype."""
    return make(op, sources[0].dtype, sources)


def _unless(condition: UOp, value: UOp, instead: Scalar = 0) -> UOp:
    """The value, and a number where the condition holds."""
    return where(condition, value.const_like(instead), value)


def _add(node: UOp, g: UOp) -> Parts:
    """x + y: (g, g)"""
    return g, g


def _multiply(node: UOp, g: UOp) -> Parts:
    """x * y: (g y, g x), of complex numbers with conjugates"""
    x, y = node.src
    return g * y.conjugate(), g * x.conjugate()


def _constant(node: UOp, g: UOp) -> Parts:
    """Piecewise constant (floor, trunc, round, x // y): 0, also at the steps"""
    return tuple(map(zeros_like, node.src))


def _floormod(node: UOp, g: UOp) -> Parts:
    """x - y floor(x / y): (g, -g floor(x / y))"""
    x, y = node.src
    return g, -g * (x // y)


def _where(node: UOp, g: UOp) -> Parts:
    """y where c, else z: (none, g where c, g where not c)"""
    condition = node.src[0]
    zero = g.const_like(0)
    return None, where(condition, g, zero), where(condition, zero, g)


def _cast(node: UOp, g: UOp) -> Parts:
    """x in another float dtype: g in the dtype of x"""
    return (g.cast(node.src[0].dtype),)


def _max(node: UOp, g: UOp) -> Parts:
    """max(x, y): g to the greater, half to each where they are equal, both where one is NaN"""
    x, y = node.src
    shared = where(x.equal(y), g * 0.5, g)
    return _unless(x < y, shared), _unless(y < x, shared)


def _min(node: UOp, g: UOp) -> Parts:
    """min(x, y): g to the lesser, half to each where they are equal, both where one is NaN"""
    x, y = node.src
    shared = where(x.equal(y), g * 0.5, g)
    return _unless(y < x, shared), _unless(x < y, shared)


def _negate(node: UOp, g: UOp) -> Parts:
    """-x: -g"""
    return (-g,)


def _truncmod(node: UOp, g: UOp) -> Parts:
    """x - y trunc(x / y): (g, -g trunc(x / y))"""
    x, y = node.src
    return g, -g * _on(Op.TRUNC, x / y)


def _divide(node: UOp, g: UOp) -> Parts:
    """x / y: (g / y, -g (x / y) / y), with conjugates; y * y, which overflows, is not formed"""
    y = node.src[1].conjugate()
    return g / y, -g * (node.conjugate() / y)


def _complex(node: UOp, g: UOp) -> Parts:
    """x + y i: (the real part of g, its imaginary part)"""
    return g.real, g.imag


def _real(node: UOp, g: UOp) -> Parts:
    """Re z: g"""
    return (complex_from(g, g.const_like(0)),)


def _imag(node: UOp, g: UOp) -> Parts:
    """Im z: i g"""
    return (complex_from(g.const_like(0), g),)


def _power(node: UOp, g: UOp) -> Parts:
    """x ** y: (g y x ** (y - 1), and 0 where y is 0; g x ** y log x, and 0 where x is 0 <= y)"""
    x, y = node.src
    zero = y.const_like(0)
    exponent = _unless(y.equal(zero), y, 1) - 1
    base = _unless(x.equal(0) & (zero <= y), x, 1)
    return g * (y * _on(Op.POW, x, exponent)), g * (node * _on(Op.LOG, base))


def _sqrt(node: UOp, g: UOp) -> Parts:
    """sqrt x: g / (2 sqrt x)"""
    return (g / (node * 2),)


def _exp(node: UOp, g: UOp) -> Parts:
    """e ** x: g e ** x"""
    return (g * node,)


def _exp2(node: UOp, g: UOp) -> Parts:
    """2 ** x: g 2 ** x log 2"""
    return (g * (node * math.log(2)),)


def _log(node: UOp, g: UOp) -> Parts:
    """log x: g / x"""
    return (g / node.src[0],)


def _log2(node: UOp, g: UOp) -> Parts:
    """log2 x: g / (x log 2)"""
    return (g / (node.src[0] * math.log(2)),)


def _sin(node: UOp, g: UOp) -> Parts:
    """sin x: g cos x"""
    return (g * _on(Op.COS, node.src[0]),)


def _cos(node: UOp, g: UOp) -> Parts:
    """cos x: -g sin x"""
    return (-g * _on(Op.SIN, node.src[0]),)


def _tanh(node: UOp, g: UOp) -> Parts:
    """t = tanh x: g (1 - t) (1 + t); 1 - t is exact where t is near 1, and 1 - t t is not"""
    return (g * ((1 - node) * (1 + node)),)


def _erf(node: UOp, g: UOp) -> Parts:
    """erf x: g 2 / sqrt(pi) e ** (-x x)"""
    x = node.src[0]
    return (g * (_on(Op.EXP, -(x * x)) * (2 / math.sqrt(math.pi))),)


def _logadd(node: UOp, g: UOp) -> Parts:
    """log(e ** x + e ** y): g times the share of each in the sum"""
    x, y = node.src
    return g * _on(Op.EXP, x - node), g * _on(Op.EXP, y - node)


def sum_to(value: UOp, shape: Shape) -> UOp:
    """The gradient of a source with `shape` that stood with a greater one as a scalar does.

    A scalar is read by every element, so its gradient is the sum over all of them.
    """
    own = shape_of(value)
    if shape or not own:
        return value
    return reshape(reduce_axes(value, Op.ADD, range(len(own))), ())


def _fitted(formula: SlopeRule) -> SlopeRule:
    """The rule of a formula: contributions have the shapes of their sources."""

    @wraps(formula)
    def rule(node: UOp, g: UOp) -> Parts:
        parts = zip(node.src, formula(node, g), strict=True)
        return tuple(
            None if part is None else sum_to(part, shape_of(source)) for source, part in parts
        )

    return rule


_FORMULAS: Final[dict[int, SlopeRule]] = {
    Op.ADD: _add,
    Op.MUL: _multiply,
    Op.FLOORDIV: _constant,
    Op.FLOORMOD: _floormod,
    Op.WHERE: _where,
    Op.CAST: _cast,
    Op.MAX: _max,
    Op.MIN: _min,
    Op.NEG: _negate,
    Op.TRUNCMOD: _truncmod,
    Op.DIV: _divide,
    Op.POW: _power,
    Op.LOGADD: _logadd,
    Op.SQRT: _sqrt,
    Op.EXP: _exp,
    Op.EXP2: _exp2,
    Op.LOG: _log,
    Op.LOG2: _log2,
    Op.SIN: _sin,
    Op.COS: _cos,
    Op.TANH: _tanh,
    Op.ERF: _erf,
    Op.FLOOR: _constant,
    Op.TRUNC: _constant,
    Op.ROUND: _constant,
    Op.COMPLEX: _complex,
    Op.REAL: _real,
    Op.IMAG: _imag,
}
ELEMENTWISE_RULES: Final[dict[int, SlopeRule]] = {
    op: _fitted(formula) for op, formula in _FORMULAS.items()
}
