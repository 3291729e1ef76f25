"""64-bit integers on targets that lack them, as pairs of words.

In: a lowered kernel of native ops. Out: int64 and uint64 occur no more. Memory of them is memory
of uint32, twice as many elements, the low word first, which is read and written as vectors; the
arithmetic is in `words.py`. An index is computed in 64 bits where it has to be, as one that is
loaded, and what lies inside memory fits into 32; loops and memory beyond that are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.codegen.analysis.loops import rebuilt
from weft.codegen.context import CodegenContext
from weft.codegen.decompose import integers, words
from weft.codegen.decompose.decompose import require_native, rules_of
from weft.codegen.decompose.float_parts import like
from weft.codegen.decompose.words import Wide
from weft.ir.dtypes import BOOL, FIXED, FLOAT, DType, dtypes
from weft.ir.ops import COMPARE, Op, name
from weft.ir.shapes import largest_size, shape_of
from weft.ir.uop import UOp, make
from weft.ir.walk import topological
from weft.rewrite.driver import rewrite
from weft.rewrite.pattern import op_
from weft.rewrite.rule import Rule, structural
from weft.rewrite.ruleset import rules
from weft.support.errors import NotSupported
from weft.target.target import Target

_U32: Final = dtypes.uint32
_MEMORY: Final = frozenset((Op.PARAM, Op.BUFFER, Op.MEMORY))


def emulate_wide_integers(kernel: UOp, context: CodegenContext) -> UOp:
    """Compute with words what the target has no instructions for."""
    target = context.target
    if dtypes.int64 not in target.native_dtypes:
        nodes = _nodes(kernel)
        if any(_is_lacking(node, target) for node in nodes):
            emulated = _Emulation(target).run(rewrite(kernel, _QUOTIENTS))
            kernel = rewrite(emulated, rules_of(target))
    require_native(kernel, target)
    return kernel


def _nodes(kernel: UOp) -> list[UOp]:
    return topological(kernel, enter=lambda node: node.op not in (Op.PARAM, Op.BUFFER))


def _is_wide(dtype: DType) -> bool:
    return bool(dtype.kind & FIXED) and dtype.bits == 64


def _is_lacking(node: UOp, target: Target) -> bool:
    is_cast = node.op == Op.CAST and node.dtype.scalar is _U32 and node.src[0].dtype.kind == FLOAT
    return _is_wide(node.dtype) or is_cast


def _quotient(op: int, *choices: Callable[[UOp], UOp | None]) -> Rule:
    """Divisions of 64 bits in terms of TRUNCDIV, whatever the target has."""

    def in_terms_of_truncdiv(node: UOp) -> UOp | None:
        if not _is_wide(node.dtype):
            return None
        return next((made for choice in choices if (made := choice(node)) is not None), None)

    named = f"wide-{name(op).lower()}"
    return structural(op_(op))(in_terms_of_truncdiv)._replace(name=named)


_QUOTIENTS: Final = rules(
    "wide-quotients",
    _quotient(Op.FLOORDIV, integers.simpler_quotient, integers.floor_quotient),
    _quotient(Op.FLOORMOD, integers.simpler_remainder, integers.floor_remainder),
    _quotient(Op.TRUNCMOD, integers.truncated_remainder),
)


class _Emulation:
    """What each node became: another node, or words for a wide integer."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.made: dict[UOp, UOp] = {}
        self.wide: dict[UOp, Wide] = {}

    def run(self, kernel: UOp) -> UOp:
        for node in _nodes(kernel):
            if node.op in _MEMORY or node.op in (Op.INDEX, Op.AFTER):
                changes = _is_wide(node.dtype) or node.op == Op.INDEX
                self.made[node] = self._address(node) if changes else self._same(node)
            elif _is_wide(node.dtype):
                self.wide[node] = self._value(node)
            else:
                self.made[node] = self._narrow(node)
        return self.made[kernel]

    def _same(self, node: UOp) -> UOp:
        return node if node.op in _MEMORY else rebuilt(node, self.made, {})

    def _address(self, node: UOp) -> UOp:
        """Memory of words, and addresses in it."""
        if node.op == Op.MEMORY:
            title, space, size = node.arg
            return make(Op.MEMORY, _U32, (), (title, space, 2 * size))
        if node.op in _MEMORY:
            self._require_reachable(node)
            return make(node.op, _U32, node.src, (node.arg[0], (*node.arg[1], 2), *node.arg[2:]))
        if node.op == Op.AFTER:
            return make(Op.AFTER, _U32, tuple([self.made[source] for source in node.src]))
        memory, mask, position = self._access(node)
        if not _is_wide(node.dtype):
            return make(Op.INDEX, node.dtype, (memory, mask, position))
        lanes = node.dtype.lanes
        if mask.dtype.lanes > 1:
            pairs = tuple(lane for lane in range(lanes) for _ in range(2))
            mask = make(Op.LANES, dtypes.bool.vector(2 * lanes), (mask,), pairs)
        return make(Op.INDEX, _U32.vector(2 * lanes), (memory, mask, position * 2))

    def _require_reachable(self, memory: UOp) -> None:
        if 2 * largest_size(shape_of(memory)) >= 1 << 31:
            raise NotSupported(
                f"memory of {largest_size(shape_of(memory))} wide integers on {self.target.name}",
                rule="a target without 64-bit integers reaches 2**31 words",
            )

    def _access(self, node: UOp) -> tuple[UOp, UOp, UOp]:
        """The memory, the mask and the position of an INDEX, which is inside the memory."""
        memory, mask, position = node.src
        if position in self.wide:
            inside = words.cast(self.wide[position].low, dtypes.int32)
        else:
            inside = self.made[position]
        return self.made[memory], self.made[mask], inside

    def _words(self, node: UOp) -> tuple[Wide, ...]:
        return tuple(self.wide[source] for source in node.src)

    def _value(self, node: UOp) -> Wide:
        """A wide integer as words."""
        lanes, is_signed = node.dtype.lanes, not node.dtype.is_unsigned
        if node.op == Op.CONST:
            return words.constant(int(node.arg), lanes)
        if node.op == Op.LOAD:
            address = self.made[node.src[0]]
            both = make(Op.LOAD, address.dtype, (address,))
            return Wide(*(_lanes(both, range(part, 2 * lanes, 2)) for part in (0, 1)))
        if node.op == Op.WHERE:
            condition, *sources = node.src
            return words.where(self.made[condition], *(self.wide[part] for part in sources))
        if node.op in (Op.VECTOR, Op.LANES):
            dtype = _U32.vector(lanes)
            return words.each(
                lambda *parts: make(node.op, dtype, parts, node.arg), *self._words(node)
            )
        if node.op in (Op.CAST, Op.BITCAST):
            return self._converted(node, is_signed)
        if node.op in (Op.MAX, Op.MIN):
            x, y = self._words(node)
            first = words.less(x, y, is_signed) ^ (node.op == Op.MAX)
            return words.where(first, x, y)
        function = _FUNCTIONS.get(node.op)
        if function is None:
            raise NotSupported(
                f"{name(node.op)} of {node.dtype.name} on {self.target.name}",
                rule="a target without 64-bit integers has their arithmetic only",
            )
        return function(is_signed, *self._words(node))

    def _converted(self, node: UOp, is_signed: bool) -> Wide:
        source = node.src[0]
        if _is_wide(source.dtype):
            return self.wide[source]
        if node.op == Op.BITCAST:
            raise NotSupported(
                f"the bits of {source.dtype.name} on {self.target.name}",
                rule="a target without 64-bit integers has no bits of a float64",
            )
        if source.dtype.kind == FLOAT:
            return words.from_float(self.made[source], is_signed)
        return words.from_narrow(self.made[source])

    def _narrow(self, node: UOp) -> UOp:
        """What is not a wide integer itself, but may be made of some."""
        if node.op == Op.STORE and node.src[1] in self.wide:
            address = self.made[node.src[0]]
            value = _interleaved(self.wide[node.src[1]])
            ranges = [self.made[loop] for loop in node.src[2:]]
            return make(Op.STORE, node.dtype, (address, value, *ranges))
        if node.op in COMPARE and node.src[0] in self.wide:
            x, y = self._words(node)
            if node.op == Op.EQUAL:
                return words.equal(x, y)
            is_signed = not node.src[0].dtype.is_unsigned
            if node.op == Op.LESS_EQUAL:
                return ~words.less(y, x, is_signed)
            return words.less(x, y, is_signed)
        if node.op == Op.CAST and node.src[0] in self.wide:
            return _narrowed(node, self.wide[node.src[0]])
        if node.op == Op.CAST and _is_lacking(node, self.target):
            return words.from_float(self.made[node.src[0]], is_signed=True).low
        return rebuilt(node, self.made, {})


def _narrowed(node: UOp, value: Wide) -> UOp:
    """A wide integer as something else."""
    dtype = node.dtype.scalar
    if dtype.kind == BOOL:
        return ~(value.low | value.high).equal(0)
    if dtype.kind == FLOAT:
        return words.to_float(value, dtype, is_signed=not node.src[0].dtype.is_unsigned)
    return words.cast(value.low, dtype)


def _lanes(vector: UOp, numbers: range) -> UOp:
    return make(Op.LANES, _U32.vector(len(numbers)), (vector,), tuple(numbers))


def _interleaved(value: Wide) -> UOp:
    """Low and high words interleaved, as memory has them."""
    lanes = value.low.dtype.lanes
    both = make(Op.VECTOR, _U32.vector(2 * lanes), (value.low, value.high))
    if lanes == 1:
        return both
    order = tuple(part + lane for lane in range(lanes) for part in (0, lanes))
    return make(Op.LANES, like(both, _U32), (both,), order)


_FUNCTIONS: Final[dict[int, Callable[..., Wide]]] = {
    Op.ADD: lambda is_signed, x, y: words.add(x, y),
    Op.NEG: lambda is_signed, x: words.negate(x),
    Op.MUL: lambda is_signed, x, y: words.multiply(x, y),
    Op.AND: lambda is_signed, x, y: words.each(lambda a, b: a & b, x, y),
    Op.OR: lambda is_signed, x, y: words.each(lambda a, b: a | b, x, y),
    Op.XOR: lambda is_signed, x, y: words.each(lambda a, b: a ^ b, x, y),
    Op.NOT: lambda is_signed, x: words.each(lambda a: ~a, x),
    Op.SHL: lambda is_signed, x, y: words.shift_left(x, y),
    Op.SHR: lambda is_signed, x, y: words.shift_right(x, y, is_signed),
    Op.TRUNCDIV: lambda is_signed, x, y: words.divide(x, y, is_signed),
}
