"""How two parts of a reduction are joined that needs another one: derived from its body.

A reduction F over k needs a reduction R over k when its body holds R:

    m = reduce MAX over k: s            l = reduce ADD over k: exp(s - m)

Each part of the iterations has an R and an F of its own. Where the body of F has one of three
forms, what F is against another R follows from the body itself:

    exponential   exp(e - R) * x                F * exp(old - new)
    chosen        where(e == R, x, nothing)     where(old == new, F, nothing)
    centered      (e - R / n) ** 2              F + n * (old / n - new / m) ** 2, for both parts

e is what R reduces, x does not hold R, and the parts are then reduced by the op of F. `join_of`
finds the form; all parts of it are scalar expressions, so kernels and tensor graphs share them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from weft.ir.build import index, true, where
from weft.ir.dtypes import BOOL, FLOAT, INDEX, DType, Scalar
from weft.ir.ops import COMPARE, Op
from weft.ir.reduction.joined import join_slots
from weft.ir.reduction.reductions import identity
from weft.ir.scalar import evaluate
from weft.ir.uop import UOp, make
from weft.ir.walk import substitute, topological
from weft.rules.validity import narrow


class Need(NamedTuple):
    """A reduction `op` of `body` that needs another, `reference`, which reduces `element`.

    `element` is what the reference reduces, as the body has it; `varies` tells whether a node
    changes along the ranges, and `length` is how many iterations there are. Where `is_masked` is
    set, the reference leaves elements out that the body may not.
    """

    op: int
    body: UOp
    reference: UOp
    element: UOp
    varies: Callable[[UOp], bool]
    length: UOp | int
    is_masked: bool = False


class Part(NamedTuple):
    """What is known of some of the iterations: the reference over them, and how many they are."""

    reference: UOp
    length: UOp


class Join(NamedTuple):
    """What a reduction is over a part of its iterations, and how parts are joined.

    `body(part)` is the body over a part. `moved(value, part, whole)` is what the value of a part
    counts for in that of more iterations; the op of the reduction reduces these, and the result is
    multiplied and divided by the factors. `has_count` tells whether numbers of iterations matter:
    the reference is a sum then, of which differences are taken, so that its rounding shows.

    `error(part)` is what sums up to the rounding error of the reference of a part, where that
    matters, and `without(value, error, part)` is the value of the part without it.
    """

    op: int
    body: Callable[[Part], UOp]
    moved: Callable[[UOp, Part, Part], UOp]
    has_count: bool = False
    factors: tuple[tuple[int, UOp], ...] = ()
    error: Callable[[Part], UOp] | None = None
    without: Callable[[UOp, UOp, Part], UOp] | None = None

    def two(self, value: DType, reference: DType, count: DType) -> UOp:
        """How two parts are joined, as a body over PARAMs."""
        refers = [reference, count] if self.has_count else [reference]
        x1, x2, r1, r2, r, *counts = join_slots(value, refers)
        n1, n2, n = counts or (r1, r2, r)
        left = self.moved(x1, Part(r1, n1), Part(r, n))
        right = self.moved(x2, Part(r2, n2), Part(r, n))
        return make(self.op, value, (left, right))


def join_of(need: Need) -> Join | None:
    """How parts of a reduction are joined; None where its body has none of the forms."""
    for find in (_exponential,) if need.is_masked else (_exponential, _chosen, _centered):
        found = find(need)
        if found is not None:
            return found
    return None


def _op_of(reference: UOp) -> int | None:
    """The op of a reference, which may be cast back to the dtype of its elements."""
    node = reference.src[0] if reference.op == Op.CAST else reference
    return node.arg[0] if node.op == Op.REDUCE else None


def _template(need: Need, node: UOp) -> tuple[UOp, UOp, UOp]:
    """A node over two slots, one for the element and one for the reference."""
    old, new = join_slots(need.element.dtype, [])
    return substitute(node, {need.element: old, need.reference: new}), old, new


def _holds(root: UOp, node: UOp) -> set[UOp]:
    """The nodes below a root that hold a node."""
    found = {node}
    for part in topological(root, enter=lambda each: each is not node):
        if not found.isdisjoint(part.src):
            found.add(part)
    return found


# ---- exp(e - R) * x


class _Linear(NamedTuple):
    """A body that is linear in an exponential: without factors that are the same throughout."""

    body: UOp
    power: UOp
    factors: tuple[tuple[int, UOp], ...]


def _exponential(need: Need) -> Join | None:
    """A sum that is linear in one exponential of e - R; masks and other factors do not matter.

    before: l = reduce ADD over k: exp(e - m) * x / y
    part:   exp(e - m') * x
    joined: l' * exp(m' - m) + l'' * exp(m'' - m), and in the end / y
    """
    is_sum = need.op == Op.ADD and need.body.dtype.kind == FLOAT
    if not is_sum or _op_of(need.reference) != Op.MAX:
        return None
    holds = _holds(need.body, need.reference)
    linear = _linear(need, need.body, holds)
    exponent = None if linear is None else _difference(need, linear.power.src[0], holds)
    if linear is None or exponent is None:
        return None

    def moved(x: UOp, part: Part, whole: Part) -> UOp:
        old, new = part.reference, whole.reference
        narrow = new.cast(need.reference.dtype)
        subtracted = substitute(exponent.subtracted, {need.reference: narrow})
        apart = old.cast(x.dtype) - subtracted.cast(x.dtype)
        apart = apart if exponent.scale == 1 else apart * exponent.scale
        factor = make(linear.power.op, x.dtype, (apart,))
        # A part of -inf counts for nothing, unless all are; what is alike keeps what it has.
        scaled = where(old.equal(-math.inf), x.const_like(0), x * factor)
        return where(old.equal(new), x, scaled)

    return Join(
        need.op,
        body=lambda part: substitute(linear.body, {need.reference: part.reference}),
        moved=moved,
        factors=linear.factors,
    )


def _linear(need: Need, node: UOp, holds: set[UOp]) -> _Linear | None:
    """A body without the factors that hold the reference and do not vary, and its exponential."""
    if node not in holds:
        return None
    if node.op in (Op.EXP, Op.EXP2):
        return _Linear(node, node, ())
    at = {Op.NEG: 0, Op.CAST: 0, Op.DIV: 0, Op.WHERE: 1, Op.MUL: 0}.get(node.op)
    if at is None or node.dtype.kind != FLOAT or node.src[at].dtype.kind != FLOAT:
        return None
    if node.op == Op.MUL and (node.src[0] not in holds or not need.varies(node.src[0])):
        at = 1
    if node.op == Op.WHERE and (node.src[0] in holds or not _is_zero(node.src[2])):
        return None
    inner = _linear(need, node.src[at], holds)
    if inner is None:
        return None
    others = [source for i, source in enumerate(node.src) if i != at]
    if node.op in (Op.MUL, Op.DIV) and others[0] in holds:
        if need.varies(others[0]):
            return None
        return inner._replace(factors=(*inner.factors, (node.op, others[0])))
    body = make(node.op, node.dtype, (*node.src[:at], inner.body, *node.src[at + 1 :]), node.arg)
    return inner._replace(body=body)


def _is_zero(node: UOp) -> bool:
    return node.op == Op.CONST and node.arg == 0


class _Difference(NamedTuple):
    """An exponent e - R times a scale; R may be 0 for an infinity."""

    subtracted: UOp
    scale: float


def _difference(need: Need, node: UOp, holds: set[UOp]) -> _Difference | None:
    """An exponent as e - R, times a number above 0; None if it is another."""
    if node.op in (Op.MUL, Op.DIV):
        at = 0 if node.src[0] in holds or node.op == Op.DIV else 1
        other = node.src[1 - at]
        inner = _difference(need, node.src[at], holds)
        if inner is None or other.op != Op.CONST or not 0 < other.arg < math.inf:
            return None
        by = float(other.arg) if node.op == Op.MUL else 1 / float(other.arg)
        return inner._replace(scale=inner.scale * by)
    if node.op != Op.ADD or need.element not in node.src:
        return None
    x, y = node.src
    other = y if x is need.element else x
    is_reference = other.op == Op.NEG and _is_same(other.src[0], need.reference)
    return _Difference(other.src[0], 1.0) if is_reference else None


def _is_same(node: UOp, reference: UOp) -> bool:
    """Whether a node is a reference, or 0 where that is infinite."""
    if node is reference:
        return True
    if node.op != Op.WHERE or node.src[2] is not reference or not _is_zero(node.src[1]):
        return False
    condition = node.src[0]
    if condition.op != Op.EQUAL or reference.dtype.kind != FLOAT:
        return False
    sides = [side for side in condition.src if side.op != Op.CONST or not math.isinf(side.arg)]
    return len(sides) == 1 and all(
        part is reference or _is_zero(part) or _keeps_finite(part)
        for part in topological(sides[0], enter=lambda each: each is not reference)
    )


def _keeps_finite(node: UOp) -> bool:
    """Whether an op has a finite result where its sources are finite."""
    is_shift = node.op == Op.ADD and any(map(_is_zero, node.src))
    return is_shift or node.op in (Op.NEG, Op.MAX, Op.MIN)


def _value(root: UOp, known: dict[UOp, Scalar]) -> Scalar | None:
    """The value of an expression of known nodes and constants; None if it holds others."""
    found = dict(known)
    for node in topological(root, enter=lambda each: each not in known):
        if node in found:
            continue
        if node.op == Op.CONST:
            found[node] = node.arg
        elif not node.src or any(source not in found for source in node.src):
            return None
        else:
            src = tuple(found[source] for source in node.src)
            found[node] = evaluate(node.op, node.dtype, src, node.src[-1].dtype)
    return found[root]


# ---- where(e == R, x, nothing)


def _chosen(need: Need) -> Join | None:
    """A reduction of what the reference chose among the elements: argmax, the number of ties.

    before: i = reduce MIN over k: where(e == m, k, n)
    part:   where(e == m', k, n)
    joined: min(where(m' == m, i', n), where(m'' == m, i'', n))
    """
    op = _op_of(need.reference)
    if op is None or op not in (Op.MAX, Op.MIN):
        return None
    holds = _holds(need.body, need.reference)
    body = need.body
    nothing, masks = identity(need.op, body.dtype), true()
    while body.op == Op.WHERE and body.src[0] not in holds and _is_constant(body.src[2], nothing):
        masks, body = masks & body.src[0], body.src[1]
    if body.op != Op.WHERE or body.src[1] in holds or not _is_nothing(need, body, masks):
        return None
    condition, old_slot, new_slot = _template(need, body.src[0])
    if not _chooses(condition, old_slot, new_slot, op):
        return None

    def moved(x: UOp, part: Part, whole: Part) -> UOp:
        old, new = (each.reference.cast(old_slot.dtype) for each in (part, whole))
        slots = {old_slot: old, new_slot: new}
        return where(substitute(condition, slots), x, body.src[2])

    return Join(
        need.op,
        body=lambda part: substitute(need.body, {need.reference: part.reference}),
        moved=moved,
    )


def _is_constant(node: UOp, value: Scalar) -> bool:
    return node.op == Op.CONST and node.arg == value


def _is_nothing(need: Need, body: UOp, masks: UOp) -> bool:
    """Whether the other case of a choice changes no result that has a chosen element."""
    value, other = body.src[1:]
    if _is_constant(other, identity(need.op, body.dtype)):
        return True
    if other.op != Op.CONST or need.op not in (Op.MIN, Op.MAX):
        return False
    if value.op != Op.CAST or value.src[0].dtype.kind != INDEX:
        return False
    position, limit = value.src[0], index(int(other.arg))
    beyond = narrow(limit < position if need.op == Op.MIN else position < limit, masks)
    return beyond.op == Op.CONST and not beyond.arg


def _ordered(dtype: DType) -> Sequence[Scalar]:
    """As many values as an order of three can tell apart."""
    if dtype.kind == FLOAT:
        return (1.0, 2.0, 3.0, math.nan)
    return (False, True) if dtype.kind == BOOL else (1, 2, 3)


def _chooses(condition: UOp, element: UOp, reference: UOp, op: int) -> bool:
    """Whether an element is chosen of all exactly if its part chose it, and all chose its part.

    The condition compares the two and nothing else, so it depends on their order alone, and every
    order is tried.
    """
    for node in topological(condition):
        is_comparison = node.op in COMPARE or node.op in (Op.AND, Op.OR, Op.NOT)
        if node not in (element, reference) and not is_comparison:
            return False

    def chosen(x: Scalar, y: Scalar) -> bool:
        return _value(condition, {element: x, reference: y}) is True

    def joined(x: Scalar, y: Scalar) -> Scalar:
        return evaluate(op, reference.dtype, (x, y), reference.dtype)

    for x, y, z in itertools.product(_ordered(element.dtype), repeat=3):
        part = joined(x, y)
        whole = joined(part, z)
        if chosen(x, whole) != (chosen(x, part) and chosen(part, whole)):
            return False
    return True


# ---- (e - R / n) ** 2


def _centered(need: Need) -> Join | None:
    """The distances from a mean or their squares, each part around its own mean.

    before: v = reduce ADD over k: (e - s / n) ** 2
    part:   (e - s' / n') ** 2
    joined: v' + n' * (s' / n' - s / n) ** 2 + v'' + n'' * (s'' / n'' - s / n) ** 2
    """
    is_sum = need.op == Op.ADD and _op_of(need.reference) == Op.ADD
    if not is_sum or need.body.dtype is not need.reference.dtype:
        return None
    holds = _holds(need.body, need.reference)
    body = need.body
    while body.op == Op.WHERE and body.src[0] not in holds and _is_zero(body.src[2]):
        body = body.src[1]
    is_square = body.op == Op.MUL and body.src[0] is body.src[1]
    distance = body.src[0] if is_square else body
    if distance.op != Op.ADD or need.element not in distance.src:
        return None
    means = [source.src[0] for source in distance.src if source.op == Op.NEG]
    means = [mean for mean in means if mean in holds]
    if len(means) != 1 or not _is_mean(need, means[0]):
        return None
    mean = means[0]

    def mean_of(part: Part) -> UOp:
        return part.reference / part.length.maximum(1)  # of no iteration it is 0

    def moved(x: UOp, part: Part, whole: Part) -> UOp:
        apart = (mean_of(part) - mean_of(whole)).cast(x.dtype)
        return x + (apart * apart if is_square else apart) * part.length.cast(x.dtype)

    return Join(
        need.op,
        body=lambda part: substitute(need.body, {mean: part.reference / part.length}),
        moved=moved,
        has_count=True,
        error=(lambda part: substitute(distance, {mean: part.reference / part.length}))
        if is_square
        else None,
        without=lambda value, error, part: value - error * error / part.length,
    )


def _is_mean(need: Need, mean: UOp) -> bool:
    """Whether a node is the reference, divided by the number of iterations."""
    if mean.op not in (Op.MUL, Op.DIV) or need.reference not in mean.src:
        return False
    x, y = mean.src
    other = y if x is need.reference else x
    if mean.op == Op.DIV and x is not need.reference:
        return False
    if isinstance(need.length, int):
        wanted = 1 / need.length if mean.op == Op.MUL else float(need.length)
        return other is other.const_like(wanted)
    is_size = other.op == Op.CAST and other.src[0] is need.length
    return mean.op == Op.DIV and is_size
