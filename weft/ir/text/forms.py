"""One node as an expression of the text form; `text.py` has the grammar and calls `expression`.

Each op has a short form that leaves out what follows from the rest. Where a node does not fit it
(another dtype, an odd arg), the uniform form `OP[dtype](source, …; arg)` says everything, so every
node that can be made can be written. The texts of the sources stand ready on the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from weft.ir.dtypes import dtypes
from weft.ir.ops import ELEMENTWISE, INFO, Op
from weft.ir.stage import stage_parts
from weft.ir.text.page import (
    Page,
    Ref,
    arg_text,
    beside,
    const_ref,
    first_beside,
    quoted,
    typed,
    word,
)
from weft.ir.text.syntax import (
    ATOM,
    COMPARISON,
    FUNCTIONS,
    INFIX,
    LINE,
    POSTFIX,
    PREFIX,
    PREFIXES,
    result_dtype,
)
from weft.ir.uop import Arg, UOp


def expression(node: UOp, page: Page) -> Ref:
    """The short form of a node if it says everything, else the uniform form."""
    form = _FORMS.get(node.op)
    if form is not None:
        dtype = result_dtype(node.op, node.src, node.arg)
        if dtype is node.dtype or node.op in _SAY_DTYPE:
            made = form(node, page)
            if made is not None:
                return made
    return _uniform(node, page)


def _uniform(node: UOp, page: Page) -> Ref:
    arg = node.arg
    text = "" if arg is None else "; " + arg_text(arg, page.functions)
    if (
        node.op in (Op.REDUCE, Op.SCAN, Op.SCATTER)
        and arg.__class__ is tuple
        and len(arg) in (1, 2)
        and arg[0] in _OPS
    ):
        # An op by name, because numbers change when the table grows.
        rest = [arg_text(part, page.functions) for part in arg[1:]]
        text = f"; ({INFO[arg[0]].name}, {', '.join(rest)})"
    return f"{INFO[node.op].name}[{node.dtype.name}]({page.commas(node.src)}{text})", ATOM


def _infix(node: UOp, page: Page) -> Ref | None:
    if node.arg is not None:
        return None
    symbol, _, level = INFIX[node.op]
    x, y = node.src
    if node.op == Op.ADD and y.op == Op.NEG and page.refs[y][1] == PREFIX:
        symbol, y = "-", y.src[0]  # the negation has no name, so it can be a sign
    left = first_beside(x, y, page, level + (level == COMPARISON))
    return f"{left} {symbol} {beside(y, x, page, level + 1)}", level


def _prefix(node: UOp, page: Page) -> Ref | None:
    if node.arg is not None:
        return None
    return PREFIXES[node.op] + typed(node.src[0], page, PREFIX), PREFIX


def _function(node: UOp, page: Page) -> Ref | None:
    if node.arg is not None:
        return None
    src = node.src
    texts = [page.operand(part) for part in src]
    if node.op in ELEMENTWISE and len(src) > 1:
        texts[-2] = first_beside(src[-2], src[-1], page)
        texts[-1] = beside(src[-1], src[-2], page)
    return f"{INFO[node.op].name.lower()}({', '.join(texts)})", ATOM


def _method(node: UOp, page: Page, args: str) -> Ref:
    receiver = typed(node.src[0], page, POSTFIX)
    return f"{receiver}.{INFO[node.op].name.lower()}({args})", POSTFIX


def _ints(arg: Arg) -> bool:
    return arg.__class__ is tuple and all(part.__class__ is int for part in arg)


def _sizes(static: Arg, symbolic: Sequence[UOp], page: Page) -> list[str] | None:
    """Sizes as items: a bare integer is of the arg, any other expression a source."""
    if static.__class__ is not tuple:
        return None
    rest = iter(symbolic)
    items = [_size(part, rest, page) for part in static]
    return None if None in items or next(rest, None) is not None else [str(item) for item in items]


def _size(part: Arg, rest: Iterator[UOp], page: Page) -> str | None:
    if part is not None:
        return str(part) if part.__class__ is int else None
    source = next(rest, None)
    return None if source is None else typed(source, page, COMPARISON)


def _resize(node: UOp, page: Page) -> Ref | None:
    items = _sizes(node.arg, node.src[1:], page)
    return None if items is None else _method(node, page, ", ".join(items))


def _box(node: UOp, page: Page) -> Ref | None:
    pairs = node.arg
    if pairs.__class__ is not tuple or any(
        pair.__class__ is not tuple or len(pair) != 2 for pair in pairs
    ):
        return None
    items = _sizes(sum(pairs, ()), node.src[1:], page)
    if items is None:
        return None
    texts = [f"({low}, {high})" for low, high in zip(items[::2], items[1::2], strict=True)]
    return _method(node, page, ", ".join(texts))


def _numbers(node: UOp, page: Page) -> Ref | None:
    return _method(node, page, ", ".join(map(str, node.arg))) if _ints(node.arg) else None


def _copy(node: UOp, page: Page) -> Ref | None:
    return _method(node, page, quoted(node.arg)) if node.arg.__class__ is str else None


def _item(node: UOp, page: Page) -> Ref | None:
    return _method(node, page, str(node.arg))


def _bitcast(node: UOp, page: Page) -> Ref | None:
    return _method(node, page, node.dtype.name) if node.arg is None else None


def _plain(node: UOp, page: Page) -> Ref | None:
    return _method(node, page, "") if node.arg is None else None


def _after(node: UOp, page: Page) -> Ref | None:
    return _method(node, page, page.commas(node.src[1:])) if node.arg is None else None


def _cast(node: UOp, page: Page) -> Ref | None:
    if node.arg is not None:
        return None
    return f"{node.dtype.name}({typed(node.src[0], page, COMPARISON)})", ATOM


def _reduction(node: UOp, page: Page) -> Ref | None:
    arg = node.arg
    if node.op == Op.REDUCE and (_fits(arg, UOp, tuple, int, int) or _is_joined_float(arg)):
        return _joined(node, page)
    if arg.__class__ is not tuple or len(arg) != 2 or arg[0] not in _OPS or not _ints(arg[1]):
        return None
    name, axes, ranges = INFO[arg[0]].name, arg[1], node.src[1:]
    if not ranges:
        return _method(node, page, ", ".join([name, *map(str, axes)]))
    if axes:
        return None
    keyword = INFO[node.op].name.lower()
    return f"{keyword} {name} over {page.commas(ranges)}: {page.operand(node.src[0])}", LINE


def _is_joined_float(arg: Arg) -> bool:
    return _fits(arg, UOp, tuple, float, int)


def _joined(node: UOp, page: Page) -> Ref | None:
    """`reduce f0 from 0.0 with m over r1: x`; f0 joins two parts, and m is what it refers to."""
    join, axes, start, count = node.arg
    refers, ranges = node.src[1 : 1 + count], node.src[1 + count :]
    if axes or not 0 < count < len(node.src) - 1:
        return None
    said = f"{page.functions[join]} from {arg_text(start, page.functions)}"
    over = f"with {page.commas(refers)} over {page.commas(ranges)}"
    return f"reduce {said} {over}: {page.operand(node.src[0])}", LINE


def _scatter(node: UOp, page: Page) -> Ref | None:
    if not _fits(node.arg, int) or node.arg[0] not in _OPS:
        return None
    return _method(node, page, f"{INFO[node.arg[0]].name}, {page.commas(node.src[1:])}")


def _shuffle(node: UOp, page: Page) -> Ref | None:
    if not _fits(node.arg, int) or len(node.src) != 2:
        return None
    return _method(node, page, f"{page.commas(node.src[1:])}, {node.arg[0]}")


_OPS: Final = range(len(INFO))


def _index(node: UOp, page: Page) -> Ref | None:
    """Both INDEX and READ: `x[i, j if mask: dtype]`."""
    if node.arg is not None:
        return None
    memory, mask, *indices = node.src
    inside = page.commas(indices)
    if mask.op != Op.CONST or mask.dtype is not dtypes.bool or not mask.arg:
        inside += f"{' ' if inside else ''}if {page.operand(mask)}"
    if node.dtype is not memory.dtype:
        inside += f": {node.dtype.name}"
    text = f"{typed(memory, page, POSTFIX)}[{inside}]"
    return (text, POSTFIX) if node.op == Op.INDEX else ("read " + text, PREFIX)


def _load(node: UOp, page: Page) -> Ref | None:
    return None if node.arg is not None else ("load " + typed(node.src[0], page, POSTFIX), PREFIX)


def _over(ranges: Sequence[UOp], page: Page) -> str:
    return f" for {page.commas(ranges)}" if ranges else ""


def _store(node: UOp, page: Page) -> Ref | None:
    if node.arg not in (None, "ordered"):
        return None
    address, value, *ranges = node.src
    written = beside(value, address, page)
    over = _over(ranges, page) + (" ordered" if node.arg else "")
    return f"store {typed(address, page, COMPARISON)} = {written}{over}", LINE


def _stage(node: UOp, page: Page) -> Ref | None:
    arg = node.arg
    if not _fits(arg, str, tuple) and not (_fits(arg, str, tuple, str) and arg[2] == "masked"):
        return None
    wanted = 1 + len(arg[1]) + arg[1].count(None) + len(arg[2:])
    if len(node.src) < wanted:
        return None
    parts = stage_parts(node)
    texts = _sizes(arg[1], [size for size in parts.sizes if isinstance(size, UOp)], page)
    if texts is None:
        return None
    addresses = [f"{page.operand(i)} of {n}" for i, n in zip(parts.indices, texts, strict=True)]
    inside = ", ".join(addresses)
    if parts.mask is not None:
        inside += f"{' ' if inside else ''}if {page.operand(parts.mask)}"
    written = f"stage {word(arg[0])}[{inside}] = {page.operand(parts.value)}"
    return written + _over(parts.ranges, page), LINE


def _shaped(node: UOp, page: Page, said: str, static: Arg) -> Ref | None:
    items = _sizes(static, node.src, page)
    return None if items is None else (f"{said}: {node.dtype.name}[{', '.join(items)}]", LINE)


def _fits(arg: Arg, *types: type) -> bool:
    return arg.__class__ is tuple and [part.__class__ for part in arg] == list(types)


def _param(node: UOp, page: Page) -> Ref | None:
    if not _fits(node.arg, int, tuple):
        return None
    return _shaped(node, page, f"param {node.arg[0]}", node.arg[1])


def _buffer(node: UOp, page: Page) -> Ref | None:
    if not _fits(node.arg, int, tuple, str):
        return None
    number, sizes, device = node.arg
    return _shaped(node, page, f"buffer {number} {quoted(device)}", sizes)


def _iota(node: UOp, page: Page) -> Ref | None:
    return _shaped(node, page, "iota", node.arg)


def _memory(node: UOp, page: Page) -> Ref | None:
    if not _fits(node.arg, str, str, int):
        return None
    name, space, size = node.arg
    return f"memory {quoted(name)} {word(space)}: {node.dtype.name}[{size}]", LINE


def _variable(node: UOp, page: Page) -> Ref | None:
    if not _fits(node.arg, str, int, int):
        return None
    name, least, most = node.arg
    return f"variable {quoted(name)} {least}..{most}", LINE


def _special(node: UOp, page: Page) -> Ref | None:
    if not _fits(node.arg, str, int):
        return None
    kind, axis = node.arg
    return f"special {word(kind)} {axis} < {page.operand(node.src[0])}", LINE


def _call(node: UOp, page: Page) -> Ref | None:
    return f"call {page.functions[node.arg]}({page.commas(node.src)})", LINE


def _end(node: UOp, page: Page) -> Ref | None:
    return (f"end {page.operand(node.src[0])}", LINE) if node.arg is None else None


_Form = Callable[[UOp, Page], Ref | None]
_SAY_DTYPE: Final = frozenset(
    (Op.CONST, Op.PARAM, Op.BUFFER, Op.IOTA, Op.MEMORY, Op.INDEX, Op.READ, Op.CAST, Op.BITCAST)
)
_FORMS: Final[dict[int, _Form]] = {
    **dict.fromkeys(INFIX, _infix),
    **dict.fromkeys(PREFIXES, _prefix),
    **dict.fromkeys(FUNCTIONS.values(), _function),
    **dict.fromkeys((Op.INDEX, Op.READ), _index),
    **dict.fromkeys((Op.RESHAPE, Op.EXPAND), _resize),
    **dict.fromkeys((Op.PAD, Op.SHRINK), _box),
    **dict.fromkeys((Op.PERMUTE, Op.FLIP, Op.LANES), _numbers),
    Op.CONST: lambda node, page: const_ref(node),
    Op.CAST: _cast,
    Op.BITCAST: _bitcast,
    **dict.fromkeys((Op.DETACH, Op.INLINE), _plain),
    Op.COPY: _copy,
    Op.AFTER: _after,
    Op.ITEM: _item,
    **dict.fromkeys((Op.REDUCE, Op.SCAN), _reduction),
    Op.SCATTER: _scatter,
    Op.SHUFFLE: _shuffle,
    Op.LOAD: _load,
    Op.STORE: _store,
    Op.STAGE: _stage,
    Op.PARAM: _param,
    Op.BUFFER: _buffer,
    Op.IOTA: _iota,
    Op.MEMORY: _memory,
    Op.VARIABLE: _variable,
    Op.SPECIAL: _special,
    Op.CALL: _call,
    Op.END: _end,
}
