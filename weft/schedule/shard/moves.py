"""How parts of a value get from device to device, written as graph: COPY, and what joins copies.

The pass `shard` calls these. Every replica of a value is computed from the same numbers in the
same order, so all of them hold the same bits, whatever way was chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.ir.build import Size
from weft.ir.dtypes import dtypes
from weft.ir.layouts import Layout
from weft.ir.movement import expand, iota, pad, reshape, shrink
from weft.ir.ops import Op
from weft.ir.shapes import largest_size, shape_of
from weft.ir.uop import UOp, make
from weft.ir.walk import try_line
from weft.rewrite.trace_file import current

# Bytes from which on devices reduce a piece each and exchange the results: that moves less.
PIECES_FROM: Final = 1 << 16
_PLACED: Final = 1 << Op.BUFFER | 1 << Op.COPY


def has_address(node: UOp) -> bool:
    """Whether a value is on some device; others are computed wherever they are wanted."""
    return bool(node.ops & _PLACED)


def copied(node: UOp, source: str, target: str) -> UOp:
    """A value of one device on another."""
    if source == target or not has_address(node):
        return node
    return make(Op.COPY, node.dtype, (node,), target)


def sliced(node: UOp, axis: int, start: int, stop: int) -> UOp:
    """A piece of a value along an axis; what is repeated along it is repeated less often."""
    shape = shape_of(node)
    if (start, stop) == (0, shape[axis]):
        return node
    if node.op == Op.EXPAND and shape_of(node.src[0])[axis] == 1:
        return expand(node.src[0], (*shape[:axis], stop - start, *shape[axis + 1 :]))
    pairs: list[tuple[Size, Size]] = [(0, size) for size in shape]
    pairs[axis] = (start, stop)
    return shrink(node, pairs)


def boxed(node: UOp, box: Layout, number: int) -> UOp:
    """A whole value cut as one device of a layout has it."""
    if box.axis is None or not shape_of(node):
        return node
    return sliced(node, box.axis, *box.bounds[number])


def joined(pieces: Sequence[UOp], axis: int) -> UOp:
    """Pieces side by side along an axis: each padded to the whole, and chosen up to its end."""
    sizes = [_known(shape_of(piece)[axis]) for piece in pieces]
    total = sum(sizes)
    shape = (*shape_of(pieces[0])[:axis], total, *shape_of(pieces[0])[axis + 1 :])
    ones = tuple(total if number == axis else 1 for number in range(len(shape)))
    position = expand(reshape(iota(total, dtypes.int64), ones), shape)
    result: UOp | None = None
    end = total
    for piece, size in zip(reversed(pieces), reversed(sizes), strict=True):
        pairs: list[tuple[Size, Size]] = [(0, 0)] * len(shape)
        pairs[axis] = (end - size, total - end)
        padded = piece if size == total else pad(piece, pairs)
        result = padded if result is None else (position < end).where(padded, result)
        end -= size
    assert result is not None
    return result


def _known(size: Size) -> int:
    assert isinstance(size, int)  # an axis that is cut has a size that is known
    return size


def gathered(parts: Sequence[UOp], layout: Layout, target: str, box: Layout, number: int) -> UOp:
    """What device `number` of another layout has of a sharded value, on a device."""
    if layout.axis is None:
        near = layout.devices.index(target) if target in layout.devices else 0
        return copied(boxed(parts[near], box, number), layout.devices[near], target)
    start, stop = box.bounds[number] if box.axis == layout.axis else (0, sum(layout.sizes))
    if number == 0 and has_address(parts[0]):
        kind = "all-gather" if box.axis is None else "all-to-all"
        _note(kind if len(box.devices) > 1 else "gather", parts, layout.devices)
    pieces: list[UOp] = []
    for part, device, (first, last) in zip(parts, layout.devices, layout.bounds, strict=True):
        low, high = max(start, first), min(stop, last)
        if low < high:
            piece = sliced(part, layout.axis, low - first, high - first)
            if box.axis != layout.axis:
                piece = boxed(piece, box, number)
            pieces.append(copied(piece, device, target))
    return joined(pieces, layout.axis)


def reduced(parts: Sequence[UOp], devices: Sequence[str], op: int) -> tuple[UOp, ...]:
    """All-reduce: on every device, the reduction of what all have, in the order of devices.

    Each device reduces all of it, or, where there is much and there are more than two, a piece of
    it, and the results are exchanged.
    """
    shape, count = shape_of(parts[0]), len(parts)
    _note("all-reduce", parts, devices)
    size = largest_size(shape)
    is_small = size * parts[0].dtype.itemsize < PIECES_FROM or size < count
    if count <= 2 or is_small or not all(isinstance(each, int) for each in shape):
        return tuple(_reduction(parts, devices, target, op) for target in devices)
    flat = [reshape(part, (size,)) for part in parts]
    ends = [size * number // count for number in range(count + 1)]
    sums: list[UOp] = []
    for target, start, stop in zip(devices, ends, ends[1:], strict=False):
        sums.append(_reduction([sliced(x, 0, start, stop) for x in flat], devices, target, op))
    results: list[UOp] = []
    for target in devices:
        pieces = [copied(piece, own, target) for piece, own in zip(sums, devices, strict=True)]
        results.append(reshape(joined(pieces, 0), shape))
    return tuple(results)


def _note(collective: str, parts: Sequence[UOp], devices: Sequence[str]) -> None:
    """Say in the trace, if there is one, what devices exchange here, and the bytes of each."""
    trace = current()
    if trace is None:
        return
    line = try_line(parts[0])
    trace.write(
        "collective",
        name=collective,
        at=trace.now(),
        devices=list(devices),
        bytes=[largest_size(shape_of(part)) * part.dtype.itemsize for part in parts],
        **({} if line is None else {"line": trace.line(line)}),
    )


def _reduction(parts: Sequence[UOp], devices: Sequence[str], target: str, op: int) -> UOp:
    brought = [copied(part, own, target) for part, own in zip(parts, devices, strict=True)]
    result = brought[0]
    for other in brought[1:]:
        result = make(op, result.dtype, (result, other))
    return result
