"""The node of every graph: immutable, interned, small.

Equal nodes are the same object, so `is` compares whole graphs. `make` is the one way to a node;
`const` is the one way to a constant. This module is one of the two that may be ugly for speed.

- The table is a plain dict with strong references: weak ones make creation four times dearer.
  `sweep` drops what nobody holds any more; `make` calls it when the table has doubled. Only graphs
  over real memory, which are few and small, are held weakly, because memory must not wait.
- A node knows the ops below it (`ops`) and the ranges it depends on (`ranges`) as bit sets: every
  pass asks, and a set union costs five times an integer's.
- The key of a float constant tells 0.0 from -0.0 and lets NaN equal itself.
"""

from __future__ import annotations

import threading
from _weakref import _remove_dead_weakref  # type: ignore[attr-defined]
from collections.abc import Callable
from itertools import count
from typing import Any, Final
from weakref import ref

from weft.ir.dtypes import COMPLEX, FLOAT, INDEX, DType, Number, Scalar, canonical, dtypes
from weft.ir.ops import COUNT, INFO, Op
from weft.support.errors import DTypeError, InternalError
from weft.support.fork import NODES, hold_during_fork
from weft.support.source_line import SourceLine

Arg = Any  # an op's own data: hashable, and without bool or float where an int is meant
Interval = tuple[int, int]
Linear = tuple[int, tuple[tuple["UOp", int], ...]]


class UOp:
    """A node `op(src…; arg)` of a dtype. Never construct one: use `make`, `const` or operators.

    `done` holds one bit per remembered rule set under which the node is in normal form, and per
    spec that the node obeys; `new_mark` gives them out.
    `interval`, `linear`, `order` and `known_shape` are analyses, filled in when first asked for.
    """

    __slots__ = (
        "__weakref__",
        "arg",
        "done",
        "dtype",
        "interval",
        "known_shape",
        "line",
        "linear",
        "op",
        "ops",
        "order",
        "ranges",
        "src",
    )
    op: int
    dtype: DType
    src: tuple[UOp, ...]
    arg: Arg
    ops: int
    ranges: int
    done: int
    interval: Interval | None
    linear: Linear | None
    order: tuple[int, int, int] | None
    known_shape: tuple[Any, ...] | None
    line: SourceLine | None

    def __add__(self, other: UOp | Scalar) -> UOp:
        right = _try_operand(self, other)
        return NotImplemented if right is None else _combined(Op.ADD, self, right)

    def __radd__(self, other: Scalar) -> UOp:
        return _combined(Op.ADD, _operand(self, other), self)

    def __sub__(self, other: UOp | Scalar) -> UOp:
        right = _try_operand(self, other)
        return NotImplemented if right is None else _combined(Op.ADD, self, -right)

    def __rsub__(self, other: Scalar) -> UOp:
        return _combined(Op.ADD, _operand(self, other), -self)

    def __mul__(self, other: UOp | Scalar) -> UOp:
        right = _try_operand(self, other)
        return NotImplemented if right is None else _combined(Op.MUL, self, right)

    def __rmul__(self, other: Scalar) -> UOp:
        return _combined(Op.MUL, _operand(self, other), self)

    def __floordiv__(self, other: UOp | Scalar) -> UOp:
        right = _try_operand(self, other)
        return NotImplemented if right is None else make(Op.FLOORDIV, self.dtype, (self, right))

    def __mod__(self, other: UOp | Scalar) -> UOp:
        right = _try_operand(self, other)
        return NotImplemented if right is None else make(Op.FLOORMOD, self.dtype, (self, right))

    def __truediv__(self, other: UOp | Scalar) -> UOp:
        right = _try_operand(self, other)
        return NotImplemented if right is None else make(Op.DIV, self.dtype, (self, right))

    def __neg__(self) -> UOp:
        return make(Op.NEG, self.dtype, (self,))

    def __invert__(self) -> UOp:
        return make(Op.NOT, self.dtype, (self,))

    def __and__(self, other: UOp | Scalar) -> UOp:
        return make(Op.AND, self.dtype, (self, _operand(self, other)))

    def __or__(self, other: UOp | Scalar) -> UOp:
        return make(Op.OR, self.dtype, (self, _operand(self, other)))

    def __xor__(self, other: UOp | Scalar) -> UOp:
        return make(Op.XOR, self.dtype, (self, _operand(self, other)))

    def __lshift__(self, other: UOp | Scalar) -> UOp:
        return make(Op.SHL, self.dtype, (self, _operand(self, other)))

    def __rshift__(self, other: UOp | Scalar) -> UOp:
        return make(Op.SHR, self.dtype, (self, _operand(self, other)))

    def __lt__(self, other: UOp | Scalar) -> UOp:
        right = _try_operand(self, other)
        return NotImplemented if right is None else make(Op.LESS, bool_like(self), (self, right))

    def __gt__(self, other: UOp | Scalar) -> UOp:
        right = _try_operand(self, other)
        return NotImplemented if right is None else make(Op.LESS, bool_like(self), (right, self))

    def __le__(self, other: UOp | Scalar) -> UOp:
        right = _try_operand(self, other)
        return (
            NotImplemented
            if right is None
            else make(Op.LESS_EQUAL, bool_like(self), (self, right))
        )

    def __ge__(self, other: UOp | Scalar) -> UOp:
        right = _try_operand(self, other)
        return (
            NotImplemented
            if right is None
            else make(Op.LESS_EQUAL, bool_like(self), (right, self))
        )

    def equal(self, other: UOp | Scalar) -> UOp:
        """The node `self == other`; Python's own `==` compares the nodes themselves."""
        return make(Op.EQUAL, bool_like(self), (self, _operand(self, other)))

    def maximum(self, other: UOp | Scalar) -> UOp:
        return make(Op.MAX, self.dtype, (self, _operand(self, other)))

    def minimum(self, other: UOp | Scalar) -> UOp:
        return make(Op.MIN, self.dtype, (self, _operand(self, other)))

    def where(self, x: UOp, y: UOp | Scalar) -> UOp:
        """`x` where this bool holds, else `y`."""
        return make(Op.WHERE, x.dtype, (self, x, _operand(x, y)))

    def cast(self, dtype: DType) -> UOp:
        if dtype is self.dtype:
            return self
        if dtype.kind == COMPLEX or self.dtype.kind == COMPLEX:
            return _cast_parts(self, dtype)
        return make(Op.CAST, dtype, (self,))

    @property
    def real(self) -> UOp:
        """The real part; a real value is its own."""
        if self.dtype.kind != COMPLEX:
            return self
        return make(Op.REAL, self.dtype.part, (self,))

    @property
    def imag(self) -> UOp:
        """The imaginary part of a complex value."""
        return make(Op.IMAG, self.dtype.part, (self,))

    def conjugate(self) -> UOp:
        """The complex conjugate; a real value is its own."""
        return complex_from(self.real, -self.imag) if self.dtype.kind == COMPLEX else self

    def const_like(self, value: Number) -> UOp:
        """The constant `value` in this node's dtype."""
        return const(self.dtype, value)

    def bind(self, value: int) -> UOp:
        """This variable together with the value it has in this run."""
        from weft.ir.build import bind

        return bind(self, value)

    def __int__(self) -> int:
        """The value of a size whose variables are bound."""
        from weft.ir.sizes import size_value

        return size_value(self)

    @property
    def shape(self) -> tuple[Any, ...]:
        """The shape of a tensor-level value; `()` for a scalar."""
        from weft.ir.shapes import shape_of

        return shape_of(self)

    def __bool__(self) -> bool:
        raise DTypeError(
            "a UOp has no truth value",
            rule="a node stands for a value that is not known yet",
            fix="compare nodes with `is`, and build conditions with `&`, `|`, `~` and `where`;"
            " int(size) is the value of a bound size",
        )

    def __repr__(self) -> str:
        from weft.ir.text import show

        return show(self)

    def __reduce__(self) -> Any:
        from weft.ir.text import dump, parse

        return (parse, (dump(self),))


def complex_from(real: UOp, imag: UOp) -> UOp:
    """A complex value of its two parts, which are floats of one dtype."""
    return make(
        Op.COMPLEX, dtypes.complex128 if real.dtype.bits == 64 else dtypes.complex64, (real, imag)
    )


def _cast_parts(node: UOp, dtype: DType) -> UOp:
    """A cast from or to complex numbers: of both parts, or of the real one."""
    if dtype.kind != COMPLEX:
        if dtype is dtypes.bool:
            return ~make(Op.EQUAL, dtype, (node, const(node.dtype, 0)))
        return node.real.cast(dtype)
    real = node.real.cast(dtype.part)
    is_real = node.dtype.kind != COMPLEX
    return complex_from(real, const(dtype.part, 0) if is_real else node.imag.cast(dtype.part))


def bool_like(node: UOp) -> DType:
    """The dtype of a comparison of `node`: bool, with as many lanes."""
    lanes = node.dtype.lanes
    return dtypes.bool if lanes == 1 else dtypes.bool.vector(lanes)


def _operand(node: UOp, other: UOp | Scalar) -> UOp:
    if isinstance(other, UOp):
        if other.dtype is not node.dtype:
            raise DTypeError(
                f"operands differ in dtype ({node.dtype.name} and {other.dtype.name})",
                rule="the sources of a node have one dtype; nothing is promoted below the tensor",
                fix=f"cast one of them: x.cast({other.dtype!r})",
            )
        return other
    if other.__class__ is float and node.dtype.kind == INDEX:
        raise DTypeError(
            f"expected a whole number as a size, got {other}",
            rule="sizes and indices are whole numbers",
            fix="divide with //, or compute with a tensor: Tensor(size) * 2.5",
        )
    return const(node.dtype, other)


# What sizes that a program computes are made of.
_SIZES: Final = 1 << Op.VARIABLE | 1 << Op.BIND | 1 << Op.CONST | 1 << Op.ADD | 1 << Op.MUL
_SIZES_AND_NEGATION: Final = _SIZES | 1 << Op.NEG


def _combined(op: int, a: UOp, b: UOp) -> UOp:
    """A sum or product; of sizes, one node for all that are equal whatever their variables are."""
    made = make(op, a.dtype, (a, b))
    ops = made.ops
    if ops >> Op.VARIABLE & 1 and not ops & ~_SIZES_AND_NEGATION and a.dtype.kind == INDEX:
        from weft.ir.sizes import normal_size

        size = normal_size(made)
        return const(made.dtype, size) if isinstance(size, int) else size
    return made


def _try_operand(node: UOp, other: UOp | Scalar) -> UOp | None:
    """The right operand; None for one that has operators of its own for this, such as a tensor."""
    is_own = isinstance(other, (UOp, int, float)) or not hasattr(type(other), "uop")
    return _operand(node, other) if is_own else None


class _Held(ref[UOp]):
    """A node that its users hold; with it goes its key."""

    __slots__ = ("key",)
    key: tuple[Any, ...]


def _drop(held: _Held) -> None:
    # In one step: another node may have come for the key, and then it stays.
    _remove_dead_weakref(_HELD_BY_USERS, held.key)


def _hold(key: tuple[Any, ...], node: UOp) -> UOp:
    """Enter a node above memory; the one that is there already, if another thread was faster."""
    held = _Held(node, _drop)
    held.key = key
    found = _HELD_BY_USERS.setdefault(key, held)
    if found is not held:
        there = found()
        if there is not None:
            return there
        _HELD_BY_USERS[key] = held
    return node


# A key whose value is None is a miss: `sweep` is looking whether anybody else holds its node.
_TABLE: Final[dict[tuple[Any, ...], UOp | None]] = {}
# Nodes above real memory: these go when their last user goes, and the memory with them. A
# WeakValueDictionary is Python code at each step, and takes twice as long.
_HELD_BY_USERS: Final[dict[tuple[Any, ...], _Held]] = {}
_LOCK: Final = threading.Lock()
hold_during_fork(_LOCK, NODES)
_ON_SWEEP: Final[list[Callable[[], None]]] = []
_sweep_at = 200_000

# Ops that close ranges: the position of the first range among the sources, given the arg.
_CLOSES: Final[dict[int, Callable[[Arg], int]]] = {
    Op.REDUCE: lambda arg: 1 if len(arg) == 2 else 1 + arg[3],  # behind what it refers to
    Op.STORE: lambda arg: 2,
    Op.STAGE: lambda arg: 1 + len(arg[1]) + arg[1].count(None) + len(arg[2:]),
    Op.KERNEL: lambda arg: 0,
}
_LEAST: Final = [row.least for row in INFO]
_MOST: Final = [1 << 30 if row.most is None else row.most for row in INFO]
_BIT: Final = [1 << op for op in range(COUNT)]
_BUFFER_BIT: Final = _BIT[Op.BUFFER]
# Set wherever a complex value is below, so that what is there for those alone is skipped.
_COMPLEX_BIT: Final = _BIT[Op.COMPLEX]


def make(op: int, dtype: DType, src: tuple[UOp, ...] = (), arg: Arg = None) -> UOp:
    """The node with these parts; the one that exists, if it does. Constants come from `const`."""
    key = (op, dtype, src, arg)
    node = _TABLE.get(key)
    return node if node is not None else _new(key, arg)


def const(dtype: DType, value: Number) -> UOp:
    """The constant of `dtype` nearest to `value`: integers wrap, floats round.

    A complex one is made of two real ones.
    """
    if dtype.kind == COMPLEX or value.__class__ is complex:
        both = complex(value)
        return complex_from(const(dtype.part, both.real), const(dtype.part, both.imag))
    if dtype.kind != INDEX or value.__class__ is not int:
        value = canonical(dtype, value)  # type: ignore[arg-type]  # not complex, as has been seen
    key: Any = value
    if dtype.kind == FLOAT and (value == 0.0 or value != value):
        key = repr(value)  # "0.0", "-0.0" and "nan" are three keys
    node = _TABLE.get((Op.CONST, dtype, (), key))
    return node if node is not None else _new((Op.CONST, dtype, (), key), value)


def _new(key: tuple[Any, ...], arg: Arg) -> UOp:
    op, dtype, src, _ = key
    ops = _BIT[op] if dtype.kind != COMPLEX else _BIT[op] | _COMPLEX_BIT
    ranges = 0
    for child in src:
        ops |= child.ops
        ranges |= child.ranges
    if ops & _BUFFER_BIT:
        held = _HELD_BY_USERS.get(key)
        if held is not None and (node := held()) is not None:
            return node
    if arg.__class__ is bool and op != Op.CONST:  # True equals 1, and so the key of another node
        raise InternalError(f"the arg of {INFO[op].name} is a bool")
    if not _LEAST[op] <= len(src) <= _MOST[op]:
        raise InternalError(f"{INFO[op].name} cannot take {len(src)} sources")
    node = UOp()
    node.op = op
    node.dtype = dtype
    node.src = src
    node.arg = arg
    if ranges and op in _CLOSES:
        for child in src[_CLOSES[op](arg) :]:  # what the extent of a range depends on stays free
            ranges &= ~(1 << child.arg if child.op == Op.RANGE else child.ranges)
    if op == Op.RANGE:
        ranges |= 1 << arg
    node.ops = ops
    node.ranges = ranges
    node.done = 0
    node.interval = node.linear = node.order = node.known_shape = node.line = None
    if ops & _BUFFER_BIT:
        return _hold(key, node)
    if len(_TABLE) > _sweep_at:
        sweep()
    with _LOCK:  # against `sweep` in another thread; the hit path in `make` needs no lock
        found = _TABLE.setdefault(key, node)
    return node if found is None else found


def make_unique(op: int, dtype: DType, src: tuple[UOp, ...], arg: Arg) -> UOp:
    """A node over memory whose arg no other node has, so that nobody needs to look for it."""
    node = UOp()
    node.op = op
    node.dtype = dtype
    node.src = src
    node.arg = arg
    ops = _BIT[op] if dtype.kind != COMPLEX else _BIT[op] | _COMPLEX_BIT
    for child in src:
        ops |= child.ops
    node.ops = ops
    node.ranges = node.done = 0
    node.interval = node.linear = node.order = node.known_shape = node.line = None
    return node if not src else _hold((op, dtype, src, arg), node)


_marks = count()


def new_mark() -> int:
    """A bit of `UOp.done` that nobody else has."""
    return 1 << next(_marks)


def on_sweep(forget: Callable[[], None]) -> None:
    """Register a function that drops remembered nodes; `sweep` calls it first."""
    _ON_SWEEP.append(forget)


def sweep() -> int:
    """Drop every node that only the table holds, and return how many those were.

    Sources are always entered before the nodes that use them, so one walk backwards sees a node
    after all its users are gone. The table lets go of each node for a moment and takes it back if
    a weak reference still finds it: no count of references is right on every interpreter.
    """
    global _sweep_at
    for forget in _ON_SWEEP:
        forget()
    with _LOCK:
        before = len(_TABLE)
        keys = list(_TABLE)
        while keys:
            _let_go(keys.pop())  # a key holds the sources, which are next
        _sweep_at = max(200_000, 2 * len(_TABLE))
        return before - len(_TABLE)


def _let_go(key: tuple[Any, ...]) -> None:
    """Drop the node of a key unless somebody else holds it; to be called with the lock held.

    Threads that ask for the node meanwhile find None, which is a miss, and wait for the lock.
    """
    held = ref(_TABLE[key])
    try:
        _TABLE[key] = None
    finally:  # an interrupt may come at any line
        node = held()
        if node is None:
            del _TABLE[key]
        else:
            _TABLE[key] = node


def live_nodes() -> int:
    """How many nodes the table holds."""
    return len(_TABLE)


def first_closed(node: UOp) -> int:
    """The position of the first range among the sources of a node that closes ranges."""
    return _CLOSES[node.op](node.arg)


def range_ids(ranges: int) -> list[int]:
    """The range numbers in a bit set, smallest first."""
    found: list[int] = []
    while ranges:
        low = ranges & -ranges
        found.append(low.bit_length() - 1)
        ranges ^= low
    return found
