"""tinygrad's rules and nodes for the benchmarks of the engine; imported where it is installed.

tinygrad takes no closures as rules, so what they use has to be a name of this module.
"""

from __future__ import annotations

from tinygrad.dtype import dtypes
from tinygrad.uop import Ops
from tinygrad.uop.ops import PatternMatcher, UOp, UPat

from bench.random_rules import OPS, Shape
from weft.ir.ops import BY_NAME, COMMUTATIVE_OPS

_OPERANDS = (UPat.var("x"), UPat.var("y"))
_MUL_TO_ADD = (UPat(Ops.MUL, src=_OPERANDS), lambda x, y: UOp(Ops.ADD, x.dtype, (x, y)))
_ADD_TO_MUL = (UPat(Ops.ADD, src=_OPERANDS), lambda x, y: UOp(Ops.MUL, x.dtype, (x, y)))

PRODUCTS_TO_SUMS = PatternMatcher([_MUL_TO_ADD])
LOOP = PatternMatcher([_MUL_TO_ADD, _ADD_TO_MUL])


def product_chain(count: int) -> UOp:
    node: UOp = UOp.range(16, 0)
    two = UOp.const(2)
    for _ in range(count):
        node = UOp(Ops.MUL, node.dtype, (node, two))
    return node


def random_rules(shapes: list[Shape]) -> PatternMatcher:
    """A rule for each shape, whose result is the first source that may be anything."""
    return PatternMatcher([(_pattern(shape, ["x"]), lambda x: x) for shape in shapes])


def _pattern(shape: Shape | None, unused: list[str]) -> UPat:
    if shape is None:
        return UPat(name=unused.pop()) if unused else UPat()
    name, sources = shape
    found = [_pattern(source, unused) for source in sources]
    # A list is tried in every order, as Weft tries the sources of a commutative op.
    is_ordered = BY_NAME[name] not in COMMUTATIVE_OPS
    return UPat(Ops[OPS[name]], src=tuple(found) if is_ordered else found)


def random_node(shape: Shape | None) -> UOp:
    if shape is None:
        return UOp.variable("x", 0, 9, param=True)
    name, sources = shape
    return UOp(Ops[OPS[name]], dtypes.int32, tuple(map(random_node, sources)))


def sums_and_products(plan: list[tuple[bool, int, int]], leaves: list[UOp]) -> list[UOp]:
    """Make a node for each step: a sum or a product of two earlier ones."""
    nodes, index = list(leaves), dtypes.weakint
    for is_sum, i, j in plan:
        nodes.append(UOp(Ops.ADD if is_sum else Ops.MUL, index, (nodes[i], nodes[j])))
    return nodes
