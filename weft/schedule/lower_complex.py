"""Complex values become pairs of real ones, and complex memory real memory with a last axis of 2.

In: a tensor graph. Out: one without complex values. The parts stay apart from one memory to the
next, so a product is four real products, each with its own reduction, and no kernel has pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from weft.ir.build import call, item, param, store, tuple_of, where
from weft.ir.dtypes import dtypes
from weft.ir.movement import broadcast, expand, positions, reshape, shrink
from weft.ir.ops import MOVEMENT, Op, name
from weft.ir.results import FILLING, results_of
from weft.ir.shapes import fill_sizes, shape_of
from weft.ir.uop import UOp, const, make
from weft.ir.views import unmoved
from weft.ir.walk import rebuild, topological
from weft.schedule.context import ScheduleContext
from weft.support.errors import InternalError, NotSupported

# Ops that change nothing about their first source.
_TRANSPARENT: Final = (Op.CUSTOM_GRADIENT, Op.INLINE)
# Ops that do the same to each part; the sources behind the first are sizes, masks and indices.
_ON_EACH: Final = MOVEMENT | {Op.DETACH, Op.STAGE, Op.INDEX}


class Pair(NamedTuple):
    """The two parts of a complex value."""

    real: UOp
    imag: UOp


def lower_complex(root: UOp, context: ScheduleContext) -> UOp:
    """Take complex values apart.

    before: store p2 = p0 * p1    of complex64[3]
    after:  store p2[:, 0] = p0[:, 0] * p1[:, 0] - p0[:, 1] * p1[:, 1];  store p2[:, 1] = …
    """
    return take_complex_apart(root)


def take_complex_apart(root: UOp) -> UOp:
    """The same of any graph whose root is real."""
    return _Scope().run(root)


class _Scope:
    """One graph, or the body of a call, and what becomes of each of its nodes."""

    def __init__(self, bodies: dict[UOp, UOp] | None = None) -> None:
        # What became of the bodies of calls: one that is called often is lowered once.
        self._bodies: dict[UOp, UOp] = {} if bodies is None else bodies
        self._made: dict[UOp, UOp] = {}  # real values, calls, effects
        self._memory: dict[UOp, UOp] = {}  # complex memory, as real memory of pairs
        self._pairs: dict[UOp, Pair] = {}
        self._effects: dict[UOp, tuple[UOp, ...]] = {}
        self._positions: dict[UOp, list[int]] = {}  # of a CALL: where each result has gone

    def run(self, root: UOp) -> UOp:
        for node in topological(root):
            if node.dtype.is_complex:
                self._pairs[node] = self._pair(node)
            else:
                self._made[node] = self._real(node)
        return self._made[root] if root in self._made else tuple_of(self._pairs[root])

    def _pair(self, node: UOp) -> Pair:
        if node.op in (Op.PARAM, Op.AFTER, Op.CALL, Op.ITEM):
            return self._from_memory(node)
        if node.op == Op.COMPLEX:
            shape = shape_of(node)  # a part may be a scalar
            return Pair(*(broadcast(self._made[part], shape) for part in node.src))
        if node.op in _TRANSPARENT:
            return self._pairs[node.src[0]]
        if node.op in (Op.REDUCE, Op.SCAN):
            return self._reduced(node)
        sources = [self._pairs[source] for source in node.src if source.dtype.is_complex]
        if node.op in _ON_EACH:
            rest = [self._made[source] for source in node.src[1:]]
            return Pair(*(make(node.op, x.dtype, (x, *rest), node.arg) for x in sources[0]))
        if node.op == Op.WHERE:
            condition = self._made[node.src[0]]
            x, y = sources
            return Pair(where(condition, x.real, y.real), where(condition, x.imag, y.imag))
        if node.op == Op.SCATTER:
            return self._scattered(node)
        rule = _ARITHMETIC.get(node.op)
        if rule is None:
            raise InternalError(f"{name(node.op)} of complex numbers is not lowered")
        return rule(*sources)

    def _from_memory(self, node: UOp) -> Pair:
        """The parts of what lies in memory, or of what a call gives."""
        if node.op in (Op.CALL, Op.ITEM):
            caller = node if node.op == Op.CALL else node.src[0]
            if caller is node:
                self._made[node] = self._called(node)
            at = self._positions[caller][0 if node.op == Op.CALL else node.arg]
            part = node.dtype.part
            return Pair(*(item(self._made[caller], at + k, part) for k in (0, 1)))
        if node.op == Op.PARAM:
            shape = fill_sizes(node, node.arg[1], 0)
            whole = param(node.arg[0], node.dtype.part, (*shape, 2))
        else:
            whole = self._after(node)
        self._memory[node] = whole
        return Pair(_part(whole, 0), _part(whole, 1))

    def _after(self, node: UOp) -> UOp:
        first, *effects = node.src
        done = tuple(part for effect in effects for part in self._effects_of(effect))
        known = self._memory.get(first)
        base = unmoved(self._pairs[first].real) if known is None else known
        return make(Op.AFTER, base.dtype, (base, *done))

    def _effects_of(self, node: UOp) -> tuple[UOp, ...]:
        """A store of complex values is two; a version of complex memory is one."""
        if node in self._memory:
            return (self._memory[node],)
        return self._effects.get(node) or (self._made[node],)

    def _reduced(self, node: UOp) -> Pair:
        """Sums of each part; a sum of products is four of them, which are products of matrices."""
        op, (source,) = node.arg[0], node.src
        if op != Op.ADD:
            raise InternalError(f"a reduction of complex numbers by {name(op)} is not lowered")

        def on(x: UOp) -> UOp:
            return make(node.op, x.dtype, (x,), node.arg)

        if source.op != Op.MUL or node.op != Op.REDUCE:
            return Pair(*map(on, self._pairs[source]))
        (a, b), (c, d) = (self._pairs[factor] for factor in source.src)
        return Pair(on(a * c) + -on(b * d), on(a * d) + on(b * c))

    def _scattered(self, node: UOp) -> Pair:
        if node.arg[0] != Op.ADD:
            raise NotSupported(
                f"scatter of complex numbers by {name(node.arg[0])}",
                rule="complex numbers are added where they meet",
            )
        value, updates, *rest = node.src
        where_to = tuple(self._made[source] for source in rest)
        parts = zip(self._pairs[value], self._pairs[updates], strict=True)
        return Pair(*(make(Op.SCATTER, x.dtype, (x, y, *where_to), node.arg) for x, y in parts))

    def _real(self, node: UOp) -> UOp:
        """What becomes of a node that is real itself, or void."""
        if not any(source.dtype.is_complex for source in node.src):
            if node.op == Op.CALL:
                return self._called(node)
            if node.op == Op.ITEM and node.src[0] in self._positions:
                return self._item(node)
            return rebuild(node, self._sources(node))
        if node.op in (Op.REAL, Op.IMAG):
            return self._pairs[node.src[0]][node.op == Op.IMAG]
        if node.op == Op.EQUAL:
            x, y = (self._pairs[source] for source in node.src)
            return x.real.equal(y.real) & x.imag.equal(y.imag)
        if node.op == Op.STORE:
            return self._store(node)
        if node.op == Op.CALL:
            return self._called(node)
        if node.op == Op.TUPLE:
            self._positions[node] = _positions(node.src)
            return tuple_of([each for source in node.src for each in self._parts(source)])
        if node.op in _TRANSPARENT:
            if node.src[0] in self._positions:
                self._positions[node] = self._positions[node.src[0]]
            return self._made[node.src[0]]
        if node.op in (Op.SINK, Op.AFTER):
            return rebuild(node, self._sources(node))
        raise InternalError(f"{name(node.op)} of complex numbers is not lowered")

    def _parts(self, node: UOp) -> Sequence[UOp]:
        return self._pairs[node] if node.dtype.is_complex else (self._made[node],)

    def _sources(self, node: UOp) -> tuple[UOp, ...]:
        """What became of the sources; a store of two parts is two effects."""
        if node.op not in (Op.SINK, Op.AFTER):
            return tuple([self._made[source] for source in node.src])
        return tuple(part for source in node.src for part in self._effects_of(source))

    def _store(self, node: UOp) -> UOp:
        target, value = (self._pairs[source] for source in node.src)
        stores = tuple(store(x, y) for x, y in zip(target, value, strict=True))
        self._effects[node] = stores
        return stores[0]

    def _item(self, node: UOp) -> UOp:
        at = self._positions[node.src[0]][node.arg]
        return item(self._made[node.src[0]], at, node.dtype)

    def _called(self, node: UOp) -> UOp:
        """A call with real memory for complex arguments, and two results for each complex one."""
        is_touched = any(source.dtype.is_complex for source in node.src)
        results = results_of(node) or (() if node.dtype is dtypes.void else (node.arg,))
        if not is_touched and not any(value.dtype.is_complex for value in results):
            return rebuild(node, self._sources(node))
        if node.arg.op in FILLING:
            raise NotSupported(
                "a kernel of your own takes no complex numbers",
                rule="a kernel is over real memory",
                fix="give it view_as_real(x)",
            )
        body = node.arg if node.arg.dtype is not dtypes.void or node.arg.op == Op.TUPLE else None
        lowered = self._bodies.get(node.arg)
        if lowered is None:
            lowered = self._bodies[node.arg] = _Scope(self._bodies).run(node.arg)
        if body is not None:
            self._positions[node] = _positions(results)
        return call(lowered, *(self._argument(source) for source in node.src))

    def _argument(self, node: UOp) -> UOp:
        """A complex argument as one value with a last axis of 2."""
        if not node.dtype.is_complex:
            return self._made[node]
        if node in self._memory:
            return self._memory[node]
        real, imag = (_beside(part) for part in self._pairs[node])
        shape = (*shape_of(node), 2)
        is_real = positions(shape, len(shape) - 1).equal(0)
        return where(is_real, expand(real, shape), expand(imag, shape))


def _positions(values: Sequence[UOp]) -> list[int]:
    """Where the parts of each value begin when those of all stand in a row."""
    counts = [2 if value.dtype.is_complex else 1 for value in values]
    return [sum(counts[:number]) for number in range(len(values))]


def _part(whole: UOp, number: int) -> UOp:
    """The real parts (0) or the imaginary parts (1) of memory of pairs."""
    *sizes, _ = shape_of(whole)
    box = [(0, size) for size in sizes]
    return reshape(shrink(whole, [*box, (number, number + 1)]), sizes)


def _beside(part: UOp) -> UOp:
    return reshape(part, (*shape_of(part), 1))


def _sum(x: Pair, y: Pair) -> Pair:
    return Pair(x.real + y.real, x.imag + y.imag)


def _product(x: Pair, y: Pair) -> Pair:
    real = x.real * y.real + -(x.imag * y.imag)
    return Pair(real, x.real * y.imag + x.imag * y.real)


def _negated(x: Pair) -> Pair:
    return Pair(-x.real, -x.imag)


def _quotient(x: Pair, y: Pair) -> Pair:
    """x / y by the larger part of y, so that its square overflows nowhere."""
    (a, b), (c, d) = x, y
    is_wide = _magnitude(d) <= _magnitude(c)
    large, small = where(is_wide, c, d), where(is_wide, d, c)
    is_zero = large.equal(const(large.dtype, 0))
    ratio = where(is_zero, small, small / where(is_zero, const(large.dtype, 1), large))
    below = large + small * ratio
    first, second = where(is_wide, a, b), where(is_wide, b, a)
    real = (first + second * ratio) / below
    imaginary = (second + -(first * ratio)) / below
    return Pair(real, where(is_wide, imaginary, -imaginary))


def _magnitude(x: UOp) -> UOp:
    return x.maximum(-x)


_ARITHMETIC: Final[dict[int, Callable[..., Pair]]] = {
    Op.ADD: _sum,
    Op.MUL: _product,
    Op.NEG: _negated,
    Op.DIV: _quotient,
}
