"""The invariants of every level: elementwise ops, constants, sizes, arguments of calls."""

from __future__ import annotations

from typing import Final

from weft.ir.dtypes import (
    BOOL,
    COMPLEX,
    FLOAT,
    INDEX,
    INT,
    UINT,
    VOID,
    DType,
    dtypes,
)
from weft.ir.ops import BINARY, COMPARE, ELEMENTWISE, UNARY, Op
from weft.ir.results import FILLING, filled_by
from weft.ir.scalar import KINDS
from weft.ir.shapes import Shape, shape_of
from weft.ir.spec.spec import Row, Verdict, row
from weft.ir.uop import Arg, UOp, bool_like, const
from weft.ir.walk import topological

REDUCTIONS: Final = frozenset((Op.ADD, Op.MUL, Op.MAX, Op.MIN, Op.AND, Op.OR, Op.LOGADD))

SCATTERS: Final = REDUCTIONS - {Op.LOGADD}

_KIND_NAMES: Final = (
    *((BOOL, "bool"), (INT, "signed integers"), (UINT, "unsigned integers")),
    *((INDEX, "index"), (FLOAT, "floats"), (COMPLEX, "complex numbers")),
)


def kinds_text(mask: int) -> str:
    return ", ".join(text for kind, text in _KIND_NAMES if mask & kind)


def is_bool(node: UOp) -> bool:
    return node.dtype is dtypes.bool


def is_index(node: UOp) -> bool:
    return node.dtype is dtypes.index


def no_arg(node: UOp) -> Verdict:
    return node.arg is None


def is_void(node: UOp) -> Verdict:
    return node.dtype is dtypes.void


def like_first(node: UOp) -> Verdict:
    return node.dtype is node.src[0].dtype


def _one_dtype(node: UOp) -> Verdict:
    first = node.src[0].dtype
    return all(source.dtype is first for source in node.src)


def _kind(node: UOp) -> Verdict:
    source, mask = node.src[-1].dtype, KINDS[node.op]
    if source.kind & mask:
        return True
    return f"it takes {kinds_text(mask)}, and the source is {source.name}"


def _where(node: UOp) -> Verdict:
    condition, x, y = node.src
    lanes_fit = condition.dtype.lanes in (1, x.dtype.lanes)
    return condition.dtype.kind == BOOL and lanes_fit and x.dtype is y.dtype is node.dtype


def _cast(node: UOp) -> Verdict:
    source = node.src[0].dtype
    has_value = not (node.dtype.kind == INDEX and source.kind == FLOAT)
    if COMPLEX in (node.dtype.kind, source.kind):
        return "a complex number is cast by its parts"
    return node.dtype.kind != VOID and node.dtype.lanes == source.lanes and has_value


def _bitcast(node: UOp) -> Verdict:
    source = node.src[0].dtype
    widths_fit = (node.dtype.bits, node.dtype.lanes) == (source.bits, source.lanes)
    return widths_fit and bool(node.dtype.kind & KINDS[Op.BITCAST])


def _complex(node: UOp) -> Verdict:
    real, imag = node.src
    return real.dtype is imag.dtype is node.dtype.part and node.dtype.is_complex


ELEMENTWISE_ROWS: Final[tuple[Row, ...]] = (
    row("an elementwise op has no arg", ELEMENTWISE, no_arg),
    row("the sources have one dtype", UNARY | BINARY | COMPARE, _one_dtype),
    row("the op is defined for the dtype of its sources", ELEMENTWISE, _kind),
    row("the result has the dtype of the sources", UNARY | BINARY, like_first),
    row(
        "a comparison gives bool, with as many lanes",
        COMPARE,
        lambda node: node.dtype is bool_like(node.src[0]),
    ),
    row("WHERE chooses by a bool between two values of its dtype", Op.WHERE, _where),
    row("a cast keeps the number of lanes", Op.CAST, _cast),
    row("COMPLEX is of two floats of the dtype of its parts", Op.COMPLEX, _complex),
    row(
        "a part has the dtype of parts",
        (Op.REAL, Op.IMAG),
        lambda node: node.dtype is node.src[0].dtype.part,
    ),
    row("a bitcast keeps the number of bits and of lanes", Op.BITCAST, _bitcast),
)


def _const(node: UOp) -> Verdict:
    fits: dict[int, type] = {BOOL: bool, FLOAT: float}
    value: Arg = node.arg
    if node.dtype.kind == VOID or type(value) is not fits.get(node.dtype.kind, int):
        return False
    return const(node.dtype, node.arg) is node


def _variable(node: UOp) -> Verdict:
    if not has_types(node.arg, str, int, int) or not is_index(node):
        return False
    return bool(node.arg[1] <= node.arg[2])


def has_types(arg: Arg, *types: type) -> bool:
    """Whether an arg is a tuple of exactly these types."""
    return arg.__class__ is tuple and [part.__class__ for part in arg] == list(types)


def are_sizes(static: Arg, symbolic: tuple[UOp, ...]) -> Verdict:
    """Whether sizes are ints from 0 on, or None with an index source for each."""
    if static.__class__ is not tuple:
        return "the sizes are not a tuple"
    holes = 0
    for size in static:
        if size is None:
            holes += 1
        elif size.__class__ is not int or size < 0:
            return f"{size!r} is not a size"
    return holes_fit(holes, symbolic)


def holes_fit(holes: int, symbolic: tuple[UOp, ...]) -> Verdict:
    """Whether there is an index source for each None of an arg."""
    if holes != len(symbolic):
        return f"the arg has {holes} symbolic sizes and there are {len(symbolic)} sources for them"
    return all(map(is_index, symbolic)) or "a symbolic size is not of dtype index"


def _buffer(node: UOp) -> Verdict:
    if node.arg.__class__ is not tuple or len(node.arg) != 3 or node.dtype.kind == VOID:
        return False
    number, sizes, where = node.arg
    if number.__class__ is not int or where.__class__ not in (str, tuple):
        return False
    if where.__class__ is tuple and (verdict := is_layout(where, sizes)) is not True:
        return verdict
    return are_sizes(sizes, node.src)


def is_layout(arg: Arg, shape: tuple[object, ...]) -> Verdict:
    """Whether an arg says how a value of a shape is laid out over several devices."""
    if arg.__class__ is not tuple or len(arg) != 3:
        return "a layout is (devices, axis, sizes)"
    devices, axis, sizes = arg
    if devices.__class__ is not tuple or any(each.__class__ is not str for each in devices):
        return "the devices are not a tuple of names"
    if len(devices) < 2 or len(set(devices)) != len(devices):
        return "there are not several devices, each named once"
    if axis is None:
        return sizes == () or "a replicated value has sizes of shards"
    if axis.__class__ is not int or not 0 <= axis < len(shape):
        return f"expected an axis of {len(shape)}, got {axis!r}"
    if len(sizes) != len(devices) or any(s.__class__ is not int or s < 1 for s in sizes):
        return "expected a shard of at least one element for each device"
    return sum(sizes) == shape[axis] or f"the shards {sizes} do not add up to {shape[axis]}"


def _param(node: UOp) -> Verdict:
    if not has_types(node.arg, int, tuple) or node.arg[0] < 0 or node.dtype.kind == VOID:
        return False
    return are_sizes(node.arg[1], node.src)


LEAF_ROWS: Final[tuple[Row, ...]] = (
    row("a constant is a canonical value of its dtype", Op.CONST, _const),
    row("a VARIABLE is (name, least, most) of dtype index", Op.VARIABLE, _variable),
    row("a BUFFER is (number, sizes, device)", Op.BUFFER, _buffer),
    row("a PARAM is (slot, sizes)", Op.PARAM, _param),
)


def _is_body(node: UOp) -> Verdict:
    return isinstance(node.arg, UOp) and node.dtype is node.arg.dtype


def _arguments(node: UOp) -> Verdict:
    filled = filled_by(node.arg, len(node.src)) if node.arg.op in FILLING else {}
    if list(filled) != list(range(len(node.src), len(node.src) + len(filled))):
        return f"the body fills PARAMs {list(filled)}, and there are {len(node.src)} arguments"
    for part in topological(node.arg):
        if part.op == Op.PARAM and part.arg[0] not in filled:
            slot = part.arg[0]
            if slot >= len(node.src):
                return f"the body has the PARAM {slot}, and there are {len(node.src)} arguments"
            if not _fits(shape_of(part), part.dtype, node.src[slot]):
                return f"PARAM {slot} differs from its argument in dtype or shape"
    return True


def _fits(shape: Shape, dtype: DType, argument: UOp) -> bool:
    """Whether an argument is what a PARAM says; a symbolic size fits any."""
    sizes = zip(shape, shape_of(argument), strict=False)
    return (
        argument.dtype is dtype
        and len(shape) == len(shape_of(argument))
        and all(isinstance(a, UOp) or isinstance(b, UOp) or a == b for a, b in sizes)
    )


CALL_ROWS: Final[tuple[Row, ...]] = (
    row("the arg of a CALL is a body of its dtype", Op.CALL, _is_body),
    row("the arguments of a CALL fit the PARAMs of its body", Op.CALL, _arguments),
)


def is_effect(node: UOp) -> bool:
    """Whether a node is there for what it does, not for a value."""
    return node.dtype is dtypes.void or node.op == Op.AFTER


AFTER_ROWS: Final[tuple[Row, ...]] = (
    row("AFTER has the dtype of its first source", Op.AFTER, like_first),
    row(
        "AFTER waits for effects",
        Op.AFTER,
        lambda node: node.arg is None and all(map(is_effect, node.src[1:])),
    ),
)
