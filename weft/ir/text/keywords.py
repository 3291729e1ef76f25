"""The forms of the text that begin with a word, and the methods: one small function for each.

`expression.py` calls them with the cursor behind the word, or behind the `(` of a method.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from weft.ir.ops import Op
from weft.ir.text.cursor import LineError
from weft.ir.uop import UOp

if TYPE_CHECKING:
    from weft.ir.text.expression import Reader


def _item(reader: Reader) -> int | UOp:
    """A size: a bare integer belongs to the arg, any other expression is a source."""
    value = reader.expression()
    if isinstance(value, UOp):
        return value
    if not value.text.lstrip("-").isdecimal():
        raise LineError(f"expected a size, found {value.text}", value.at)
    return int(value.text)


def _split(items: list[int | UOp]) -> tuple[tuple[int | None, ...], list[UOp]]:
    static = tuple(None if isinstance(item, UOp) else item for item in items)
    return static, [item for item in items if isinstance(item, UOp)]


def _shape(reader: Reader) -> tuple[tuple[int | None, ...], list[UOp]]:
    return _split(reader.items(lambda: _item(reader), "]"))


def _resize(op: int) -> Callable[[Reader, UOp], UOp]:
    def method(reader: Reader, value: UOp) -> UOp:
        static, symbolic = _split(reader.items(lambda: _item(reader), ")"))
        return reader.build(op, value, *symbolic, arg=static)

    return method


def _box(op: int) -> Callable[[Reader, UOp], UOp]:
    def pair(reader: Reader) -> list[int | UOp]:
        reader.expect("(")
        low = _item(reader)
        reader.expect(",")
        high = _item(reader)
        reader.expect(")")
        return [low, high]

    def method(reader: Reader, value: UOp) -> UOp:
        pairs = reader.items(lambda: pair(reader), ")")
        _, symbolic = _split([item for items in pairs for item in items])
        return reader.build(op, value, *symbolic, arg=tuple(_split(items)[0] for items in pairs))

    return method


def _numbers(op: int) -> Callable[[Reader, UOp], UOp]:
    return lambda reader, value: reader.build(
        op, value, arg=tuple(reader.items(reader.integer, ")"))
    )


def _bitcast(reader: Reader, value: UOp) -> UOp:
    dtype = reader.dtype()
    reader.expect(")")
    return reader.build(Op.BITCAST, value, dtype=dtype)


def _plain(op: int) -> Callable[[Reader, UOp], UOp]:
    def method(reader: Reader, value: UOp) -> UOp:
        reader.expect(")")
        return reader.build(op, value)

    return method


def _copy(reader: Reader, value: UOp) -> UOp:
    device = reader.string()
    reader.expect(")")
    return reader.build(Op.COPY, value, arg=device)


def _position(reader: Reader, value: UOp) -> UOp:
    position = reader.integer()
    reader.expect(")")
    return reader.build(Op.ITEM, value, arg=position)


def _after(reader: Reader, value: UOp) -> UOp:
    return reader.build(Op.AFTER, value, *reader.items(reader.node, ")"))


def _reduction_axes(kind: int) -> Callable[[Reader, UOp], UOp]:
    def read(reader: Reader, value: UOp) -> UOp:
        op = reader.op()
        axes: list[int] = []
        if reader.skip(","):
            axes = reader.items(reader.integer, ")")
        else:
            reader.expect(")")
        return reader.build(kind, value, arg=(op, tuple(axes)))

    return read


def _shuffle(reader: Reader, value: UOp) -> UOp:
    counter = reader.node()
    reader.expect(",")
    bits = reader.integer()
    reader.expect(")")
    return reader.build(Op.SHUFFLE, value, counter, arg=(bits,))


def _scatter(reader: Reader, value: UOp) -> UOp:
    op = reader.op()
    reader.expect(",")
    return reader.build(Op.SCATTER, value, *reader.items(reader.node, ")"), arg=(op,))


METHOD_FORMS: Final[dict[int, Callable[[Reader, UOp], UOp]]] = {
    Op.RESHAPE: _resize(Op.RESHAPE),
    Op.EXPAND: _resize(Op.EXPAND),
    Op.PAD: _box(Op.PAD),
    Op.SHRINK: _box(Op.SHRINK),
    Op.PERMUTE: _numbers(Op.PERMUTE),
    Op.FLIP: _numbers(Op.FLIP),
    Op.LANES: _numbers(Op.LANES),
    Op.SHUFFLE: _shuffle,
    Op.BITCAST: _bitcast,
    Op.DETACH: _plain(Op.DETACH),
    Op.INLINE: _plain(Op.INLINE),
    Op.COPY: _copy,
    Op.ITEM: _position,
    Op.AFTER: _after,
    Op.REDUCE: _reduction_axes(Op.REDUCE),
    Op.SCAN: _reduction_axes(Op.SCAN),
    Op.SCATTER: _scatter,
}


def _reduction(kind: int) -> Callable[[Reader], UOp]:
    def read(reader: Reader) -> UOp:
        if kind == Op.REDUCE and reader.tokens[reader.at] in reader.functions:
            return _joined(reader)
        op = reader.op()
        reader.expect("over")
        ranges = reader.nodes()
        reader.expect(":")
        return reader.build(kind, reader.node(), *ranges, arg=(op, ()))

    return read


def _joined(reader: Reader) -> UOp:
    join = reader.function()
    reader.expect("from")
    start = reader.arg()
    reader.expect("with")
    refers = reader.nodes()
    reader.expect("over")
    ranges = reader.nodes()
    reader.expect(":")
    arg = (join, (), start, len(refers))
    return reader.build(Op.REDUCE, reader.node(), *refers, *ranges, arg=arg)


def _store(reader: Reader) -> UOp:
    address = reader.node()
    reader.expect("=")
    value = reader.settle(reader.expression(), address.dtype)
    ranges = _over(reader)
    arg = "ordered" if reader.skip("ordered") else None
    return reader.build(Op.STORE, address, value, *ranges, arg=arg)


def _over(reader: Reader) -> list[UOp]:
    return reader.nodes() if reader.skip("for") else []


def _stage(reader: Reader) -> UOp:
    space = reader.word()
    indices: list[UOp] = []
    sizes: list[int | UOp] = []
    reader.expect("[")
    while reader.tokens[reader.at] not in ("]", "if"):
        if indices:
            reader.expect(",")
        indices.append(reader.node())
        reader.expect("of")
        sizes.append(_item(reader))
    mask = [reader.node()] if reader.skip("if") else []
    reader.expect("]")
    reader.expect("=")
    value = reader.node()
    static, symbolic = _split(sizes)
    arg = (space, static, "masked") if mask else (space, static)
    return reader.build(Op.STAGE, value, *indices, *symbolic, *mask, *_over(reader), arg=arg)


def _call(reader: Reader) -> UOp:
    body = reader.function()
    reader.expect("(")
    return reader.build(Op.CALL, *reader.items(reader.node, ")"), arg=body)


def _param(reader: Reader) -> UOp:
    slot = reader.integer()
    reader.expect(":")
    dtype = reader.dtype()
    reader.expect("[")
    static, symbolic = _shape(reader)
    return reader.build(Op.PARAM, *symbolic, arg=(slot, static), dtype=dtype)


def _buffer(reader: Reader) -> UOp:
    number, device = reader.integer(), reader.string()
    reader.expect(":")
    dtype = reader.dtype()
    reader.expect("[")
    static, symbolic = _shape(reader)
    return reader.build(Op.BUFFER, *symbolic, arg=(number, static, device), dtype=dtype)


def _iota(reader: Reader) -> UOp:
    reader.expect(":")
    dtype = reader.dtype()
    reader.expect("[")
    static, symbolic = _shape(reader)
    return reader.build(Op.IOTA, *symbolic, arg=static, dtype=dtype)


def _memory(reader: Reader) -> UOp:
    name, space = reader.string(), reader.word()
    reader.expect(":")
    dtype = reader.dtype()
    reader.expect("[")
    size = reader.integer()
    reader.expect("]")
    return reader.build(Op.MEMORY, arg=(name, space, size), dtype=dtype)


def _variable(reader: Reader) -> UOp:
    name, least = reader.string(), reader.integer()
    reader.expect("..")
    return reader.build(Op.VARIABLE, arg=(name, least, reader.integer()))


def _special(reader: Reader) -> UOp:
    kind, axis = reader.word(), reader.integer()
    reader.expect("<")
    return reader.build(Op.SPECIAL, reader.node(), arg=(kind, axis))


KEYWORDS: Final[dict[str, Callable[[Reader], UOp]]] = {
    "reduce": _reduction(Op.REDUCE),
    "scan": _reduction(Op.SCAN),
    "store": _store,
    "stage": _stage,
    "call": _call,
    "param": _param,
    "buffer": _buffer,
    "iota": _iota,
    "memory": _memory,
    "variable": _variable,
    "special": _special,
    "end": lambda reader: reader.build(Op.END, reader.node()),
}
