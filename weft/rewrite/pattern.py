"""Patterns: what a rule looks for, and the template of what it puts there instead.

A pattern is written as an expression over variables, `(x * c0) // c1`. `any_` matches every node,
`const_` a constant, a Python literal exactly that constant, and the same variable twice the same
node twice. The same expressions are templates on the right-hand side of an identity; there
`fold(e)` computes `e` on the values of the constants when the rule fires.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from weft.ir.dtypes import ANY, Scalar
from weft.ir.ops import Op, name
from weft.ir.text.syntax import INFIX, PREFIXES
from weft.support.errors import InternalError

_key: Final = attrgetter("key")


class Pattern:
    """One node of a pattern. `src` is None where the sources do not matter.

    `key` is a value that is equal for equal patterns, in every process. It is made with the
    pattern, of the keys of its sources, so that whoever asks for it walks nothing.
    """

    __slots__ = ("folded", "key", "kinds", "literal", "op", "src", "variable")

    def __init__(
        self,
        op: int | None = None,
        src: tuple[Pattern, ...] | None = None,
        variable: str | None = None,
        literal: Scalar | None = None,
        kinds: int = ANY,
        folded: bool = False,
    ) -> None:
        self.op = op
        self.src = src
        self.variable = variable
        self.literal = literal
        self.kinds = kinds
        self.folded = folded
        sources = None if src is None else tuple(map(_key, src))
        shown = None if literal is None else repr(literal)
        self.key = (op, sources, variable, shown, kinds, folded)

    @property
    def is_constant(self) -> bool:
        return self.op == Op.CONST

    def named(self, variable: str) -> Pattern:
        """The same pattern, with the node it matches bound to a variable."""
        return Pattern(self.op, self.src, variable, self.literal, self.kinds, self.folded)

    def __add__(self, other: Pattern | Scalar) -> Pattern:
        return node_(Op.ADD, self, other)

    def __radd__(self, other: Scalar) -> Pattern:
        return node_(Op.ADD, other, self)

    def __sub__(self, other: Pattern | Scalar) -> Pattern:
        return node_(Op.ADD, self, -other)

    def __rsub__(self, other: Scalar) -> Pattern:
        return node_(Op.ADD, other, -self)

    def __mul__(self, other: Pattern | Scalar) -> Pattern:
        return node_(Op.MUL, self, other)

    def __rmul__(self, other: Scalar) -> Pattern:
        return node_(Op.MUL, other, self)

    def __floordiv__(self, other: Pattern | Scalar) -> Pattern:
        return node_(Op.FLOORDIV, self, other)

    def __mod__(self, other: Pattern | Scalar) -> Pattern:
        return node_(Op.FLOORMOD, self, other)

    def __truediv__(self, other: Pattern | Scalar) -> Pattern:
        return node_(Op.DIV, self, other)

    def __rtruediv__(self, other: Scalar) -> Pattern:
        return node_(Op.DIV, other, self)

    def __neg__(self) -> Pattern:
        return node_(Op.NEG, self)

    def __invert__(self) -> Pattern:
        return node_(Op.NOT, self)

    def __and__(self, other: Pattern | Scalar) -> Pattern:
        return node_(Op.AND, self, other)

    def __or__(self, other: Pattern | Scalar) -> Pattern:
        return node_(Op.OR, self, other)

    def __xor__(self, other: Pattern | Scalar) -> Pattern:
        return node_(Op.XOR, self, other)

    def __lshift__(self, other: Pattern | Scalar) -> Pattern:
        return node_(Op.SHL, self, other)

    def __rshift__(self, other: Pattern | Scalar) -> Pattern:
        return node_(Op.SHR, self, other)

    def __lt__(self, other: Pattern | Scalar) -> Pattern:
        return node_(Op.LESS, self, other)

    def __le__(self, other: Pattern | Scalar) -> Pattern:
        return node_(Op.LESS_EQUAL, self, other)

    def equal(self, other: Pattern | Scalar) -> Pattern:
        return node_(Op.EQUAL, self, other)

    def __repr__(self) -> str:
        if self.literal is not None:
            return repr(self.literal)
        if not self.src:
            return self.variable or (name(self.op) if self.op is not None else "_")
        assert self.op is not None
        infix = INFIX.get(self.op)
        parts = [repr(source) for source in self.src]
        if self.op in PREFIXES:
            text = f"{PREFIXES[self.op]}{parts[0]}"
        elif infix is not None:
            text = f"({f' {infix.symbol} '.join(parts)})"
        else:
            text = f"{name(self.op)}({', '.join(parts)})"
        return f"fold({text})" if self.folded else text


def _term(value: Pattern | Scalar) -> Pattern:
    return value if isinstance(value, Pattern) else Pattern(Op.CONST, (), literal=value)


def any_(variable: str, kinds: int = ANY) -> Pattern:
    """Any node, of dtypes of these kinds, bound to a variable."""
    return Pattern(variable=variable, kinds=kinds)


def const_(variable: str) -> Pattern:
    """Any constant. Guards and functions receive its value, templates its node."""
    return Pattern(Op.CONST, (), variable)


def node_(op: int, *src: Pattern | Scalar) -> Pattern:
    """A node of this op with these sources."""
    return Pattern(op, tuple([_term(source) for source in src]))


def op_(op: int, variable: str | None = None) -> Pattern:
    """A node of this op, whatever its sources are."""
    return Pattern(op, None, variable)


def where_(condition: Pattern, x: Pattern | Scalar, y: Pattern | Scalar) -> Pattern:
    return node_(Op.WHERE, condition, x, y)


def max_(x: Pattern, y: Pattern | Scalar) -> Pattern:
    return node_(Op.MAX, x, y)


def min_(x: Pattern, y: Pattern | Scalar) -> Pattern:
    return node_(Op.MIN, x, y)


def fold(expression: Pattern) -> Pattern:
    """In a template: the constant that the expression is worth when the rule fires."""
    if expression.src is None:
        raise InternalError("fold takes an expression over constants")
    return Pattern(expression.op, expression.src, folded=True)
