"""Random patterns and nodes for both engines, from one description.

A shape is an op and one shape per source; None is any source. The ops are those that both engines
have, under Weft's names. Nothing is computed, so an op may stand on any dtype. tinygrad's rules
and nodes of the same shapes are in `tinygrad_rules.py`.
"""

from __future__ import annotations

import random
from typing import Any

from weft.ir.build import variable
from weft.ir.dtypes import dtypes
from weft.ir.ops import BY_NAME, INFO
from weft.ir.uop import UOp, make
from weft.rewrite.pattern import Pattern, any_
from weft.rewrite.rule import rule
from weft.rewrite.ruleset import RuleSet, rules

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
# All patterns and nodes have one of these at the root: a set of n rules has n / 10 for each.
ROOTS = ("ADD", "MUL", "FLOORDIV", "FLOORMOD", "LESS", "AND", "MAX", "WHERE", "NEG", "SHL")


class Shapes:
    """Random shapes, the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def patterns(self, count: int) -> list[Shape]:
        """Patterns that ask for an op below the root, at most two levels deep."""
        return [self._pattern(ROOTS[i % len(ROOTS)]) for i in range(count)]

    def _pattern(self, root: str) -> Shape:
        shape = self._shape(root, (0.6, 0.25))
        return shape if any(shape[1]) else self._pattern(root)

    def node(self) -> Shape:
        """One with ops at all sources of the root and at most of theirs."""
        return self._shape(self.random.choice(ROOTS), (1.0, 0.8))

    def _shape(self, name: str, chances: tuple[float, ...]) -> Shape:
        """Below the root, a source has an op with the chance of its level."""
        sources = tuple(
            self._shape(self.random.choice(NAMES), chances[1:])
            if chances and self.random.random() < chances[0]
            else None
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
