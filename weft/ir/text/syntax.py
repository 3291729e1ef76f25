"""What the printer and the parser of the text form agree on: words, levels, dtypes left unsaid.

`forms.py` writes a node in a short form only where `result_dtype` gives back its dtype, and
`expression.py` makes every short form with that same function, so the two cannot drift apart.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final, NamedTuple

from weft.ir.dtypes import BOOL, COMPLEXES, INDEX, SCALARS, DType, complex_of, dtypes
from weft.ir.ops import BY_NAME, COMPARE, ELEMENTWISE, INFO, MOVEMENT, Op
from weft.ir.results import results_of
from weft.ir.uop import Arg, UOp, bool_like

# How tightly a piece of text holds together, as in Python; the infix levels lie between.
LINE: Final = 0
COMPARISON: Final = 1
SUM: Final = 6
PREFIX: Final = 8
POSTFIX: Final = 9
ATOM: Final = 10


class Infix(NamedTuple):
    """An operator between two operands; equal levels group to the left."""

    symbol: str
    op: int
    level: int


INFIX: Final[dict[int, Infix]] = {
    row.op: row
    for row in (
        Infix("<", Op.LESS, COMPARISON),
        Infix("<=", Op.LESS_EQUAL, COMPARISON),
        Infix("==", Op.EQUAL, COMPARISON),
        Infix("|", Op.OR, 2),
        Infix("^", Op.XOR, 3),
        Infix("&", Op.AND, 4),
        Infix("<<", Op.SHL, 5),
        Infix(">>", Op.SHR, 5),
        Infix("+", Op.ADD, SUM),
        Infix("*", Op.MUL, 7),
        Infix("/", Op.DIV, 7),
        Infix("//", Op.FLOORDIV, 7),
        Infix("%", Op.FLOORMOD, 7),
    )
}
PREFIXES: Final[dict[int, str]] = {Op.NEG: "-", Op.NOT: "~"}

# Ops written as a function of their sources, `max(x, y)`.
FUNCTIONS: Final[dict[str, int]] = {
    INFO[op].name.lower(): op
    for op in sorted(
        ELEMENTWISE - INFIX.keys() - PREFIXES.keys() - {Op.CAST, Op.BITCAST}
        | {Op.BIND, Op.VECTOR, Op.BARRIER, Op.TUPLE, Op.SINK, Op.LINEAR}
    )
}
# Ops written as a method of their first source, `x.expand(4, n)`.
METHODS: Final[dict[str, int]] = {
    INFO[op].name.lower(): op
    for op in sorted(
        MOVEMENT
        | {Op.BITCAST, Op.DETACH, Op.COPY, Op.REDUCE, Op.SCAN, Op.SCATTER, Op.AFTER}
        | {Op.LANES, Op.SHUFFLE, Op.ITEM, Op.INLINE}
    )
}
# Ops written as a block of lines when they stand at the end of a scope.
BLOCKS: Final[dict[str, int]] = {"sink": Op.SINK, "kernel": Op.KERNEL, "linear": Op.LINEAR}

_WORDS: Final = frozenset(
    (
        *("def", "return", "let", "for", "if", "end", "of", "over", "none"),
        *("true", "false", "nan", "inf", "load", "read", "store", "stage", "reduce", "scan"),
        *("call", "param", "buffer", "iota", "memory", "variable", "special"),
    )
)


def dtype_named(name: str) -> DType | None:
    """The dtype of this name, vectors included; the text has no aliases such as `half`."""
    found = SCALARS.get(name) or COMPLEXES.get(name)
    if found is None:
        scalar, _, lanes = name.rpartition("x")
        if scalar in SCALARS and lanes.isdecimal() and int(lanes) > 1:
            found = SCALARS[scalar].vector(int(lanes))
    return found


@cache
def is_free_name(name: str) -> bool:
    """Whether a node may be called this."""
    return (
        name.isascii()
        and name.isidentifier()
        and name not in _WORDS
        and name not in FUNCTIONS
        and name not in BLOCKS
        and name not in BY_NAME
        and dtype_named(name) is None
    )


def hint(node: UOp) -> str | None:
    """The name a leaf likes to have, such as `p0` or `r3`; None where nothing suggests itself."""
    arg = node.arg
    letter = _LETTERS.get(node.op)
    if letter is not None:
        number = arg[0] if arg.__class__ is tuple and arg else arg
        return f"{letter}{number}" if number.__class__ is int and number >= 0 else None
    if arg.__class__ is not tuple or not arg or arg[0].__class__ is not str:
        return None
    if node.op == Op.SPECIAL:
        name = "".join(map(str, arg))
    elif node.op in (Op.VARIABLE, Op.MEMORY):
        name = arg[0]
    else:
        return None
    return name if is_free_name(name) else None


_LETTERS: Final = {Op.RANGE: "r", Op.PARAM: "p", Op.BUFFER: "b"}


def result_dtype(op: int, src: tuple[UOp, ...], arg: Arg) -> DType | None:
    """The dtype that follows from the other parts of a node; None where none follows."""
    rule = _RESULTS.get(op)
    return None if rule is None else rule(src, arg)


_Rule = Callable[[tuple[UOp, ...], Arg], DType | None]


def _of_first(src: tuple[UOp, ...], arg: Arg) -> DType:
    return src[0].dtype


def _void(src: tuple[UOp, ...], arg: Arg) -> DType:
    return dtypes.void


def _joined(src: tuple[UOp, ...], arg: Arg) -> DType:
    return src[0].dtype.scalar.vector(sum(part.dtype.lanes for part in src))


def _lanes(src: tuple[UOp, ...], arg: Arg) -> DType | None:
    return src[0].dtype.scalar.vector(len(arg)) if arg.__class__ is tuple and arg else None


def _item(src: tuple[UOp, ...], arg: Arg) -> DType | None:
    values = results_of(src[0])
    if values is None or arg.__class__ is not int:
        return None
    return values[arg].dtype if 0 <= arg < len(values) else None


def _body(src: tuple[UOp, ...], arg: Arg) -> DType | None:
    return arg.dtype if isinstance(arg, UOp) else None


_RESULTS: Final[dict[int, _Rule]] = {
    **dict.fromkeys(ELEMENTWISE - COMPARE - {Op.CAST, Op.BITCAST}, _of_first),
    **dict.fromkeys(COMPARE, lambda src, arg: bool_like(src[0])),
    **dict.fromkeys(MOVEMENT, _of_first),
    **dict.fromkeys((Op.RANGE, Op.SPECIAL, Op.BIND, Op.DETACH, Op.COPY, Op.SHARD), _of_first),
    Op.INLINE: _of_first,
    **dict.fromkeys((Op.REDUCE, Op.SCAN, Op.SCATTER), _of_first),
    **dict.fromkeys((Op.LOAD, Op.STAGE, Op.READ, Op.AFTER, Op.SHUFFLE), _of_first),
    **dict.fromkeys((Op.STORE, Op.END, Op.BARRIER, Op.TUPLE), _void),
    **dict.fromkeys((Op.SINK, Op.KERNEL, Op.LINEAR, Op.PROGRAM), _void),
    **dict.fromkeys((Op.COPY_BOX, Op.MBARRIER, Op.MMA, Op.MMA_GROUP), _void),
    Op.TENSOR_MAP: _of_first,
    Op.CUSTOM_GRADIENT: _of_first,
    Op.WHERE: lambda src, arg: src[1].dtype,
    Op.COMPLEX: lambda src, arg: complex_of(src[0].dtype),
    **dict.fromkeys((Op.REAL, Op.IMAG), lambda src, arg: src[0].dtype.part),
    Op.VARIABLE: lambda src, arg: dtypes.index,
    Op.VECTOR: _joined,
    Op.LANES: _lanes,
    Op.ITEM: _item,
    Op.CALL: _body,
}


def is_plain(dtype: DType) -> bool:
    """Whether a literal that stands alone is of this dtype: an integer is an index."""
    return dtype.lanes == 1 and dtype.kind in (INDEX, BOOL)
