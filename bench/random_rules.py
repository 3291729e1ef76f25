"""Random patterns and nodes for both engines, from one description.

A shape is an op and one shape per source; None is any source. The ops are those that both engines
have, under Weft's names. Nothing is computed, so an op may stand on any dtype.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from weft.ir.build import variable
from weft.ir.dtypes import dtypes
from weft.ir.ops import BY_NAME, COMMUTATIVE_OPS, INFO
from weft.ir.uop import UOp, make
from weft.rewrite.pattern import Pattern, any_
from weft.rewrite.rule import rule
from weft.rewrite.ruleset import RuleSet, rules

if TYPE_CHECKING:
    from tinygrad.uop.ops import PatternMatcher, UPat
    from tinygrad.uop.ops import UOp as PeerUOp

Shape = tuple[str, tuple[Any, ...]]

# Weft's name of each op, and tinygrad's where it is another.
OPS = {
    **{name: name for name in ("ADD", "MUL", "FLOORDIV", "FLOORMOD", "AND", "OR", "XOR", "MAX")},
    **{name: name for name in ("SHL", "SHR", "POW", "NEG", "SQRT", "EXP2", "LOG2", "SIN")},
    **{name: name for name in ("TRUNC", "WHERE")},
    "TRUNCDIV": "CDIV",
    "TRUNCMOD": "CMOD",
    "LESS": "CMPLT",
    "EQUAL": "CMPEQ",
    "DIV": "FDIV",
}
NAMES = sorted(OPS)


class Shapes:
    """Random shapes, the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def pattern(self) -> Shape:
        """One that asks for at least one op below the root, two levels deep at most."""
        while True:
            shape = self._shape((0.6, 0.25))
            if any(source is not None for source in shape[1]):
                return shape

    def node(self) -> Shape:
        """One with ops at all sources of the root and at most of theirs."""
        return self._shape((1.0, 0.8))

    def _shape(self, chances: tuple[float, ...]) -> Shape:
        """Below the root, a source has an op with the chance of its level."""
        name = self.random.choice(NAMES)
        sources = tuple(
            self._shape(chances[1:]) if chances and self.random.random() < chances[0] else None
            for _ in range(INFO[BY_NAME[name]].least)
        )
        return name, sources


def weft_rules(shapes: list[Shape]) -> RuleSet:
    """A rule for each shape, whose result is the first source that may be anything."""
    items = [rule(f"random-{i}", _pattern(s, ["x"]), any_("x")) for i, s in enumerate(shapes)]
    return rules(f"random-{len(shapes)}", *items)


def _pattern(shape: Shape | None, unused: list[str]) -> Pattern:
    if shape is None:
        return any_(unused.pop()) if unused else Pattern()
    name, sources = shape
    return Pattern(BY_NAME[name], tuple(_pattern(source, unused) for source in sources))


def weft_node(shape: Shape | None) -> UOp:
    if shape is None:
        return variable("x", 0, 9)
    name, sources = shape
    return make(BY_NAME[name], dtypes.int32, tuple(map(weft_node, sources)))


def tinygrad_rules(shapes: list[Shape]) -> PatternMatcher:
    from tinygrad.uop.ops import PatternMatcher

    return PatternMatcher([(_tinygrad_pattern(shape, ["x"]), lambda x: x) for shape in shapes])


def _tinygrad_pattern(shape: Shape | None, unused: list[str]) -> UPat:
    from tinygrad.uop import Ops
    from tinygrad.uop.ops import UPat

    if shape is None:
        return UPat(name=unused.pop()) if unused else UPat()
    name, sources = shape
    found = [_tinygrad_pattern(source, unused) for source in sources]
    # A list is tried in every order, as Weft tries the sources of a commutative op.
    is_ordered = BY_NAME[name] not in COMMUTATIVE_OPS
    return UPat(Ops[OPS[name]], src=tuple(found) if is_ordered else found)


def tinygrad_node(shape: Shape | None) -> PeerUOp:
    from tinygrad.dtype import dtypes as peer_dtypes
    from tinygrad.uop import Ops
    from tinygrad.uop.ops import UOp as PeerUOp

    if shape is None:
        return PeerUOp.variable("x", 0, 9, param=True)
    name, sources = shape
    return PeerUOp(Ops[OPS[name]], peer_dtypes.int32, tuple(map(tinygrad_node, sources)))
