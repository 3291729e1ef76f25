"""One test for all rules: where a rule fires, both sides have the same value, dtype and shape.

Each rule is tried on many random matches of its left-hand side, for every kind of dtype it speaks
of, with the edge values of that dtype, and evaluated by the plain Python meaning of the ops, which
wraps fixed-width integers and tells apart 0.0 and -0.0. A new rule is found by this test by
itself.
"""

import math
import random
import zlib

import pytest

from fuzz.index_expressions import CONSTANTS, Generator, value
from weft.ir.bounds import bounds
from weft.ir.build import range_, variable
from weft.ir.dtypes import BOOL, FLOAT, INDEX, dtypes
from weft.ir.ops import COMPARE, Op
from weft.ir.scalar import KINDS
from weft.ir.uop import UOp, const, make
from weft.ir.walk import topological
from weft.rewrite.driver import rewrite
from weft.rewrite.ruleset import RuleSet
from weft.rules.simplify import SIMPLIFY, simplify

TRIES = 400
POINTS = 12
FEWEST_HITS = 8

DTYPES = [
    *(dtypes.index, dtypes.bool, dtypes.int8, dtypes.uint8, dtypes.int32, dtypes.uint64),
    *(dtypes.float32, dtypes.float16, dtypes.bfloat16, dtypes.fp8e4m3, dtypes.fp8e5m2fnuz),
    dtypes.float64,
]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -7.25, 1e-3, 448.0, 1e30, -1e-40]
FLOATS += [math.inf, -math.inf, math.nan]


class Instances:
    """Random nodes that match a pattern."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.generator = Generator(seed)
        self.bound: dict[str, UOp] = {}

    def match(self, pattern, dtype):
        """A node for a pattern whose last source, or which itself, has the dtype."""
        self.bound = {}
        return self.node(pattern, dtype, is_root=True)

    def node(self, pattern, dtype, is_root=False):
        if pattern.variable in self.bound:
            return self.bound[pattern.variable]
        if pattern.literal is not None:
            made = const(dtype, pattern.literal)
        elif pattern.op == Op.CONST:
            made = const(dtype, self.number(dtype))
        elif pattern.op is None:
            made = simplify(self.value(dtype))
        elif pattern.src is None:
            made = self.leaf_of(pattern.op)
        else:
            made = self.inner(pattern, dtype, is_root)
        if pattern.variable is not None:
            self.bound[pattern.variable] = made
        return made

    def inner(self, pattern, dtype, is_root):
        """A node whose last source has the dtype at the root, and which has it itself below."""
        op = pattern.op
        sources = [dtype] * len(pattern.src)
        result = dtype
        if op == Op.WHERE:
            sources[0] = dtypes.bool
        elif op in COMPARE or op in (Op.CAST, Op.BITCAST):
            others = [d for d in DTYPES if op != Op.BITCAST or d.bits == dtype.bits]
            other = dtypes.bool if op in COMPARE and is_root else self.random.choice(others)
            if is_root:
                result = other
            else:
                sources = [other] * len(pattern.src)
        src = tuple(self.node(s, d) for s, d in zip(pattern.src, sources, strict=True))
        return make(op, result, src)

    def leaf_of(self, op):
        if op == Op.RANGE:
            return range_(5, self.random.choice((1, 2)))
        least = self.random.randint(-2, 2)
        return variable("v", least, least + self.random.randint(0, 1))

    def number(self, dtype):
        if dtype.kind == BOOL:
            return self.random.random() < 0.5
        if dtype.kind == FLOAT:
            return self.random.choice(FLOATS)
        if dtype.kind == INDEX or self.random.random() < 0.7:
            return self.random.choice(CONSTANTS)
        return self.random.choice((dtype.min, dtype.max, dtype.max // 2, dtype.min + 1))

    def value(self, dtype):
        free = make(Op.PARAM, dtype, (), (self.random.randint(0, 2), ()))
        if dtype.kind == FLOAT:
            return free if self.random.random() < 0.7 else -free
        leaves = self.generator.leaves()
        if dtype.kind == BOOL:
            return free if self.random.random() < 0.4 else self.generator.condition(leaves, 2)
        if dtype.kind == INDEX:
            return self.generator.number(leaves, self.random.randint(0, 3))
        small = self.random.choice(leaves).cast(dtype)
        return self.generator.number([small, free], self.random.randint(0, 2))


def environment(picks: random.Random, *nodes: UOp):
    """Random values for all leaves, edges of their dtypes among them."""
    found = {}
    instances = Instances(picks.randint(0, 1 << 30))
    for leaf in topological(*nodes):
        if leaf.op == Op.PARAM:
            found[leaf] = const(leaf.dtype, instances.number(leaf.dtype)).arg
        elif leaf.op in (Op.RANGE, Op.VARIABLE):
            found[leaf] = picks.randint(*bounds(leaf))
    return found


def meets(assumptions):
    """Whether a value is one that a rule with these assumptions speaks of."""
    assert set(assumptions) <= {"finite", "nonzero", "no signed zeros"}

    def check(number):
        is_finite = "finite" not in assumptions or math.isfinite(number)
        return is_finite and ("nonzero" not in assumptions or number != 0)

    return check


def is_same(x, y):
    if isinstance(x, float) and isinstance(y, float):
        return repr(x) == repr(y)
    return type(x) is type(y) and x == y


# Rules that share a function share its name, so each has a number too.
EVERY_RULE = [
    pytest.param(item, id=f"{item.name}-{number}")
    for number, item in enumerate(SIMPLIFY.all_rules)
]


def operand_dtypes(item):
    return [dtype for dtype in DTYPES if dtype.kind & item.over and _has_meaning(item, dtype)]


def _has_meaning(item, dtype):
    """Whether the ops of a pattern are defined on a dtype at all."""
    stack = [item.lhs]
    while stack:
        part = stack.pop()
        if part.op is not None and part.src and not KINDS[part.op] & dtype.kind:
            return False
        if part.op in (Op.CAST, Op.WHERE):
            continue
        stack.extend(part.src or ())
    return True


def _is_undefined(node):
    """A float has no index value."""
    return node.op == Op.CAST and node.dtype.kind == INDEX and node.src[0].dtype.kind == FLOAT


@pytest.mark.parametrize("item", EVERY_RULE)
def test_both_sides_agree(item):
    single = RuleSet("one", (item,), constants_right=False).allowing(*item.assumes)
    table = single.compile(None)
    picks = random.Random(zlib.crc32(item.name.encode()))
    candidates = operand_dtypes(item)
    assert candidates, "the rule's ops have no meaning on the kinds it speaks of"
    hits = 0
    for _ in range(TRIES):
        instances = Instances(picks.randint(0, 1 << 30))
        node = instances.match(item.lhs, picks.choice(candidates))
        if any(map(_is_undefined, topological(node))):
            continue
        after = table[node.op](node, None)
        if after is None or after is node:
            continue
        hits += 1
        assert after.dtype is node.dtype
        assert rewrite(rewrite(after, SIMPLIFY), SIMPLIFY) is rewrite(after, SIMPLIFY)
        for _ in range(POINTS):
            at = environment(picks, node, after)
            if not all(map(meets(item.assumes), at.values())):
                continue
            before_value, after_value = value(node, at), value(after, at)
            if "no signed zeros" in item.assumes:
                before_value, after_value = before_value + 0.0, after_value + 0.0
            assert is_same(before_value, after_value), f"{node} -> {after} at {at}"
    assert hits >= FEWEST_HITS, f"the rule fired {hits} times in {TRIES} tries"
