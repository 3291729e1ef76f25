"""Which reductions can be joined part by part, and that parts in any order give the whole."""

import math
import random

import pytest

from weft.ir.build import index_of, load, param, range_, reduce_ranges, where
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.reduction.reductions import identity
from weft.ir.scalar import evaluate
from weft.ir.uop import UOp, const, make
from weft.ir.walk import topological
from weft.rules.joins import Join, Need, Part, join_of

F32, I32 = dtypes.float32, dtypes.int32
K = range_(0, 12)
X, Y = (load(index_of(param(slot, F32, (12,)), (K,))) for slot in range(2))
ROW = load(index_of(param(2, F32, ()), ()))
TOP = reduce_ranges(X, Op.MAX, (K,))
LOW = reduce_ranges(X, Op.MIN, (K,))
SUM = reduce_ranges(X, Op.ADD, (K,))
INF, NAN = math.inf, math.nan


def exp(x: UOp) -> UOp:
    return make(Op.EXP, x.dtype, (x,))


def need(op: int, body: UOp, reference: UOp) -> Need:
    return Need(op, body, reference, X, lambda node: bool(node.ranges), 12)


def is_nan(x: UOp) -> UOp:
    return ~x.equal(x)


TOTAL = reduce_ranges(exp(X - TOP), Op.ADD, (K,))
FINITE = where(TOP.maximum(-TOP).equal(INF), TOP.const_like(0), TOP)
MASK = Y < 0.5
JOINED = {
    "exponential": (Op.ADD, exp(X - TOP), TOP),
    "exponential of base 2": (Op.ADD, make(Op.EXP2, F32, (X - TOP,)), TOP),
    "scaled": (Op.ADD, exp((X - TOP) * 0.5), TOP),
    "times another": (Op.ADD, Y * exp(-TOP + X), TOP),
    "masked": (Op.ADD, where(MASK, exp(X - TOP), X.const_like(0)), TOP),
    "logsumexp": (Op.ADD, exp(X - FINITE), TOP),
    "masked logsumexp": (Op.ADD, where(MASK, exp(X - FINITE), X.const_like(0)), TOP),
    "divided by its sum": (Op.ADD, exp(X - TOP) / TOTAL * Y, TOP),
    "argmax": (Op.MIN, where(is_nan(X) | X.equal(TOP), K.cast(I32), const(I32, 12)), TOP),
    "argmin": (Op.MIN, where(is_nan(X) | X.equal(LOW), K.cast(I32), const(I32, 12)), LOW),
    "ties": (Op.ADD, where(TOP <= X, X.const_like(1), X.const_like(0)), TOP),
    "value at the greatest": (Op.MAX, where(X.equal(TOP), Y, Y.const_like(-INF)), TOP),
    "distances": (Op.ADD, X - SUM / 12.0, SUM),
    "centered": (Op.ADD, (X - SUM / 12.0) * (X - SUM / 12.0), SUM),
}  # fmt: skip
APART = {
    "a scale of any sign": (Op.ADD, exp((X - TOP) * ROW), TOP),
    "another scale": (Op.ADD, exp(X * 2.0 - TOP), TOP),
    "a sum with it": (Op.ADD, exp(X - TOP) + Y, TOP),
    "twice": (Op.ADD, exp(X - TOP) * exp(X - TOP), TOP),
    "entropy": (Op.ADD, exp(X - TOP) * (X - TOP), TOP),
    "a maximum of it": (Op.MAX, exp(X - TOP), TOP),
    "relative to a sum": (Op.ADD, exp(X - SUM), SUM),
    "0 at a finite number": (Op.ADD, exp(X - where(TOP.equal(5.0), TOP.const_like(0), TOP)), TOP),
    "below the greatest": (Op.MAX, where(X < TOP, X, X.const_like(-INF)), TOP),
    "near the greatest": (Op.ADD, where(TOP < X + 1.0, Y, Y.const_like(0)), TOP),
    "another number for nothing": (Op.MIN, where(X.equal(TOP), Y, Y.const_like(3)), TOP),
    "another mean": (Op.ADD, (X - SUM / 11.0) * (X - SUM / 11.0), SUM),
    "a product of two distances": (Op.ADD, (X - SUM / 12.0) * (Y - SUM / 12.0), SUM),
}


@pytest.mark.parametrize("name", APART)
def test_what_has_no_form_stays_apart(name: str) -> None:
    assert join_of(need(*APART[name])) is None


def value(root: UOp, known: dict[UOp, float]) -> float:
    """An expression of known nodes; floats are those of Python, so that only rules can differ."""
    found = dict(known)
    for node in topological(root, enter=lambda node: node not in known):
        if node in found:
            continue
        if node.op == Op.CONST:
            found[node] = node.arg
            continue
        src = tuple(found[source] for source in node.src)
        wide = [dtypes.float64 if n.dtype is F32 else n.dtype for n in (node, node.src[-1])]
        found[node] = evaluate(node.op, wide[0], src, wide[1])
    return found[root]


class Whole:
    """A reduction of rows of numbers: at once, and in parts that are joined in a random order."""

    def __init__(self, op: int, body: UOp, reference: UOp, join: Join) -> None:
        self.op, self.body, self.reference, self.join = op, body, reference, join

    def points(self, rows: list[tuple[int, float, float]]) -> list[dict[UOp, float]]:
        return [{K: k, X: x, Y: y, ROW: 0.5} for k, x, y in rows]

    def reduced(self, op: int, values: list[float], dtype: object) -> float:
        total = None
        for each in values:
            total = each if total is None else value(make(op, F32, (A, B)), {A: total, B: each})
        return identity(op, F32 if dtype is F32 else dtypes.int32) if total is None else total

    def at_once(self, rows: list[tuple[int, float, float]]) -> float:
        points = self.points(rows)
        known = {self.reference: self.reduced(self.reference.arg[0], [p[X] for p in points], F32)}
        known[TOTAL] = sum(
            value(exp(X - TOP), {**p, **known, TOP: known.get(TOP, 0.0)}) for p in points
        )
        return self.reduced(
            self.op, [value(self.body, {**p, **known}) for p in points], self.body.dtype
        )

    def part(self, rows: list[tuple[int, float, float]]) -> tuple[float, float, float]:
        points = self.points(rows)
        reference = self.reduced(self.reference.arg[0], [p[X] for p in points], F32)
        body = self.join.body(Part(R, N))
        values = [value(body, {**p, R: reference, N: float(len(rows))}) for p in points]
        return self.reduced(self.op, values, self.body.dtype), reference, float(len(rows))

    def joined(self, rows: list[tuple[int, float, float]], rng: random.Random) -> float:
        cuts = sorted(rng.sample(range(1, len(rows)), rng.randrange(1, len(rows))))
        states = [
            self.part(rows[a:b]) for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)
        ]
        count = self.join.has_count
        two = self.join.two(self.body.dtype, F32, F32)
        while len(states) > 1:
            at = rng.randrange(len(states) - 1)
            (x1, r1, n1), (x2, r2, n2) = states[at : at + 2]
            r = self.reduced(self.reference.arg[0], [r1, r2], F32)
            given = [x1, x2, r1, r2, r, *((n1, n2, n1 + n2) if count else ())]
            slots = {n: given[n.arg[0]] for n in topological(two) if n.op == Op.PARAM}
            states[at : at + 2] = [(value(two, slots), r, n1 + n2)]
        result, reference, _ = states[0]
        points = self.points(rows)
        total = sum(value(exp(X - TOP), {**p, TOP: reference}) for p in points)
        for op, factor in self.join.factors:
            other = value(factor, {TOTAL: total, self.reference: reference})
            result = value(make(op, F32, (A, B)), {A: result, B: other})
        return result


A, B, R, N = (param(slot, F32, ()) for slot in range(90, 94))
EDGES = (-INF, INF, NAN, 0.0, -0.0, 1.0, 1.0, 2.5, -3.0)


@pytest.mark.parametrize("name", JOINED)
def test_parts_in_any_order_give_the_whole(name: str, seed: int) -> None:
    op, body, reference = JOINED[name]
    join = join_of(need(op, body, reference))
    assert join is not None
    whole = Whole(op, body, reference, join)
    rng = random.Random(seed)
    for trial in range(60):
        draw = (lambda: rng.choice(EDGES)) if trial % 3 else (lambda: rng.gauss(0, 3))
        if trial % 7 == 0:
            draw = lambda: -INF  # noqa: E731
        rows = [(k, draw(), rng.uniform(-1, 1)) for k in range(12)]
        want, got = whole.at_once(rows), whole.joined(rows, rng)
        assert want == pytest.approx(got, rel=1e-9, abs=1e-12, nan_ok=True), rows


def test_a_count_is_one_for_symbolic_sizes_too() -> None:
    n = range_(7, 5).src[0]
    size = make(Op.VARIABLE, dtypes.index, (), ("n", 1, 9))
    body = (X - SUM / size.cast(F32)) * (X - SUM / size.cast(F32))
    varies = lambda node: bool(node.ranges)  # noqa: E731
    assert join_of(Need(Op.ADD, body, SUM, X, varies, size)) is not None
    assert join_of(Need(Op.ADD, body, SUM, X, varies, n)) is None
