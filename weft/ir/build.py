"""Strict builders for nodes that operators do not reach. Each one checks what it is given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, const, make
from weft.support.errors import ArgumentError, ArgumentTypeError

Size = int | UOp
# Where and how large a stage is: in global memory, and as large as its value.
GLOBAL_STAGE: Final = ("global", ())


def index(value: Size) -> UOp:
    """A size or number as a node of the index dtype."""
    return const(dtypes.index, value) if isinstance(value, int) else value


def size_of(node: UOp) -> Size:
    """The inverse of `index`: a constant becomes an int."""
    return int(node.arg) if node.op == Op.CONST else node


def global_stage(value: UOp) -> UOp:
    """A value that is materialized in memory: the boundary of a kernel."""
    return make(Op.STAGE, value.dtype, (value,), GLOBAL_STAGE)


def range_(number: int, extent: Size) -> UOp:
    """The loop counter with this number, from 0 to below the extent.

    Numbers are given out per kernel, starting at 0: they are positions in a bit set, and equal
    kernels must have equal numbers to be equal.
    """
    return make(Op.RANGE, dtypes.index, (index(extent),), number)


def variable(name: str, least: int, most: int, dtype: DType | None = None) -> UOp:
    """Create a symbolic size between `least` and `most`, both included; `bind` gives it a value.

    Sizes are exact integers, so `dtype` changes nothing; programs for tinygrad pass it.

    >>> n = variable("n", 1, 8).bind(3)
    >>> n + 1, int(n + 1)
    ((bind(n, 3) + 1), 4)
    """
    if least > most:
        raise ArgumentError(
            f"Variable {name!r}: the least value {least} is above the greatest {most}",
            rule="Variable(name, min, max) needs min <= max",
        )
    return make(Op.VARIABLE, dtypes.index, (), (name, least, most))


def bind(var: UOp, value: int) -> UOp:
    """A variable together with the value it has in this run."""
    if var.op != Op.VARIABLE:
        raise ArgumentTypeError(
            f"bind: expected a Variable, got {var!r}",
            rule="a Variable is bound once; arithmetic is on the bound one",
            fix="write Variable(name, min, max).bind(value) + 1",
        )
    if not hasattr(type(value), "__index__"):
        raise ArgumentTypeError(
            f"Variable {var.arg[0]!r}: a value is an int, not {type(value).__name__}",
            rule="sizes are whole numbers",
        )
    value = value.__index__()
    name, least, most = var.arg
    if not least <= value <= most:
        raise ArgumentError(
            f"Variable {name!r}: {value} is out of its range",
            facts=[
                ("least", str(least), ""),
                ("greatest", str(most), ""),
                ("value", str(value), ""),
            ],
            rule="a bound value is between the variable's min and max",
        )
    return make(Op.BIND, dtypes.index, (var, index(value)))


def where(condition: UOp, x: UOp, y: UOp) -> UOp:
    return make(Op.WHERE, x.dtype, (condition, x, y))


def true() -> UOp:
    return const(dtypes.bool, True)


def all_of(*conditions: UOp) -> UOp:
    """The conjunction of the conditions; `true` for none."""
    result: UOp | None = None
    for condition in conditions:
        result = condition if result is None else result & condition
    return true() if result is None else result


def reduce_axes(value: UOp, op: int, axes: Sequence[int]) -> UOp:
    """The reduction of a tensor over some of its axes, which keep size 1."""
    return make(Op.REDUCE, value.dtype, (value,), (op, tuple(axes)))


def reduce_ranges(value: UOp, op: int, ranges: Sequence[UOp]) -> UOp:
    """The reduction of a scalar expression over ranges."""
    return make(Op.REDUCE, value.dtype, (value, *ranges), (op, ()))


def scan_axis(value: UOp, op: int, axis: int) -> UOp:
    """The reductions of all prefixes of a tensor along an axis."""
    return make(Op.SCAN, value.dtype, (value,), (op, (axis,)))


def scan_range(value: UOp, op: int, loop: UOp) -> UOp:
    """The reduction of a scalar expression over the iterations of a loop up to the present one."""
    return make(Op.SCAN, value.dtype, (value, loop), (op, ()))


def scatter(value: UOp, updates: UOp, mask: UOp, indices: Sequence[UOp], op: int) -> UOp:
    """A tensor with updates reduced into it where the indices of its first axes say."""
    return make(Op.SCATTER, value.dtype, (value, updates, mask, *indices), (op,))


def param(slot: int, dtype: DType, shape: Sequence[Size]) -> UOp:
    """The argument number `slot` of the enclosing call."""
    static, symbolic = split_symbolic(shape)
    return make(Op.PARAM, dtype, symbolic, (slot, static))


def buffer(number: int, dtype: DType, shape: Sequence[Size], device: str) -> UOp:
    static, symbolic = split_symbolic(shape)
    return make(Op.BUFFER, dtype, symbolic, (number, static, device))


def split_symbolic(sizes: Sequence[Size]) -> tuple[tuple[int | None, ...], tuple[UOp, ...]]:
    """Sizes as an arg holds them (None for a symbolic one) and the symbolic ones as sources."""
    for size in sizes:
        if not isinstance(size, int):
            static = tuple(each if isinstance(each, int) else None for each in sizes)
            return static, tuple(each for each in sizes if not isinstance(each, int))
    return tuple(sizes), ()  # type: ignore[arg-type]  # ints, as has been seen


def index_of(memory: UOp, indices: Sequence[UOp], mask: UOp | None = None) -> UOp:
    """`memory` at these indices; an address if it is memory of a kernel, else a value."""
    return make(Op.INDEX, memory.dtype, (memory, true() if mask is None else mask, *indices))


def load(address: UOp) -> UOp:
    return make(Op.LOAD, address.dtype, (address,))


def store(address: UOp, value: UOp, ranges: Sequence[UOp] = ()) -> UOp:
    return make(Op.STORE, dtypes.void, (address, value, *ranges))


def sink(*nodes: UOp) -> UOp:
    return make(Op.SINK, dtypes.void, nodes)


def call(body: UOp, *args: UOp) -> UOp:
    """The body with `PARAM(slot)` standing for `args[slot]`."""
    return make(Op.CALL, body.dtype, args, body)


def tuple_of(values: Iterable[UOp]) -> UOp:
    """Several values as one node, whose parts `item` names."""
    return make(Op.TUPLE, dtypes.void, tuple(values))


def one_or_tuple(values: Sequence[UOp]) -> UOp:
    """The value, if it is one; a TUPLE of several."""
    return values[0] if len(values) == 1 else tuple_of(values)


def item(node: UOp, number: int, dtype: DType) -> UOp:
    """One of the values of a node that has several: a CALL, a TUPLE."""
    return make(Op.ITEM, dtype, (node,), number)


def items(node: UOp, values: Iterable[UOp]) -> list[UOp]:
    """All values of a node that has several; `values` are nodes of their dtypes."""
    return [item(node, number, value.dtype) for number, value in enumerate(values)]


def call_results(body: UOp, *args: UOp) -> list[UOp]:
    """The results of a call: one, or of a TUPLE as many as it has.

    >>> x, y = (param(slot, dtypes.int32, (2,)) for slot in range(2))
    >>> len(call_results(x + y, x, x)), [part.arg for part in call_results(tuple_of([x, y]), y, x)]
    (1, [0, 1])
    """
    done = call(body, *args)
    return items(done, body.src) if body.op == Op.TUPLE else [done]
