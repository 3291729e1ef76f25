"""Images of few channels: the windows of a convolution become rows of a matrix in memory.

`channels_last` asks. Copies of boxes bring the channels of a pixel, and matrix units multiply
whole lines of them. A picture has three channels, so nearly all that is multiplied would be zeros.
Where it takes less time, all that a window shows is written as a row, and the convolution and the
gradient of its weight are products of that matrix:

    conv(x[N, C, H, W], w[O, C, T, T])   ->
        rows = stage(windows of stage(x.pad(…), channels last))    [N, Y, X, T·T·C]
        reduce ADD axes (T·T·C): rows * stage(w.permute(2, 3, 1, 0))
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from weft.ir.build import global_stage, reduce_axes
from weft.ir.movement import expand, pad, reshape, shrink
from weft.ir.ops import MOVEMENT, Op
from weft.ir.reduction.contract import ROW_BYTES
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp, make
from weft.schedule.layout.convolutions import Convolution, ConvolutionFactor, varies
from weft.schedule.layout.view_axes import (
    axis_below,
    inverse,
    permuted,
    sizes_of,
    with_base,
    with_last,
    without_cast,
)
from weft.target.matrix import LEAST_SIDE
from weft.target.memory import GLOBAL
from weft.target.target import Target

# Columns of the smallest tile.
TILE_SIDE: Final = 64


class Windows(NamedTuple):
    """The factor that is an image, the other one, and the axes of their product.

    A window shows taps, and channels behind them. Either the windows are summed, or the pixels.
    """

    image: ConvolutionFactor
    other: ConvolutionFactor
    pixels: list[int]
    window: list[int]
    column: int
    is_window_summed: bool


def windows_of(reduction: UOp, found: Convolution, target: Target) -> Windows | None:
    """The windows of a convolution, if it takes less time over rows of them."""
    sizes, axes = sizes_of(reduction.src[0]), reduction.arg[1]
    summed = [axis for axis in axes if sizes[axis] > 1]
    for image, other in (found.factors, found.factors[::-1]):
        seen, others = varies(image.view), varies(other.view)
        own = [i for i, size in enumerate(sizes) if size > 1 and seen[i] and i not in axes]
        columns = [i for i, size in enumerate(sizes) if size > 1 and others[i] and i not in axes]
        below = {axis: axis_below(image.view, image.base, axis) for axis in (*own, *summed)}
        is_seen = all(seen[axis] and others[axis] for axis in summed)
        if not image.is_image or not is_seen or len(columns) != 1 or image.channel is None:
            continue
        window, pixels = sorted((own, summed), key=lambda each: _count(sizes, each))
        channels = [axis for axis in window if below[axis] == image.channel]
        if len(channels) != 1 or None not in below.values() or len(window) < 2:
            continue
        taps = [axis for axis in window if axis not in channels]
        result = Windows(image, other, pixels, [*taps, *channels], columns[0], window is summed)
        return result if _is_faster(sizes, result, target) else None
    return None


def _count(sizes: Sequence[int], axes: Sequence[int]) -> int:
    return math.prod(sizes[axis] for axis in axes)


def _is_faster(sizes: Sequence[int], found: Windows, target: Target) -> bool:
    """Whether writing and reading rows takes less time than multiplying lines of zeros."""
    dtype = found.image.base.dtype
    rates = [u.rate for u in target.matrix_units if u.tiles and (dtype, dtype) in u.inputs]
    if not rates or dtype.itemsize != 2:
        return False
    line = ROW_BYTES // dtype.itemsize
    pixels, columns = _count(sizes, found.pixels), sizes[found.column]
    shown, channels = _count(sizes, found.window), sizes[found.window[-1]]
    if channels >= line or min(shown, columns) < LEAST_SIDE:
        return False
    rate = target.peaks.reached * max(rates) / 1e9
    sums = 2 * pixels * -(-columns // TILE_SIDE) * TILE_SIDE / rate  # of one element each
    moved = 2 * pixels * shown * dtype.itemsize
    rows = target.costs.launch + moved * target.memory(GLOBAL).cost / target.units
    return rows + sums * -(-shown // line) * line < sums * line * (shown // channels)


def gathered(reduction: UOp, found: Windows, other: UOp, alignment: int) -> tuple[UOp, UOp]:
    """The sum over rows of windows, with its columns last, and the view of it that is wanted.

    `other` is the other factor, laid out with its channels last; where it is a weight, as it is.
    """
    sizes = sizes_of(reduction.src[0])
    count, columns = _count(sizes, found.window), sizes[found.column]
    pixels = [sizes[axis] for axis in found.pixels]
    rows = _aligned(_rows(found, sizes), alignment)
    if found.is_window_summed:
        weight = _matrix(other, [*found.window, found.column])
        right = reshape(
            _aligned(reshape(weight, (count, columns)), alignment),
            (*(1 for _ in pixels), count, columns),
        )
        axes = [len(pixels)]
        kept = [*found.pixels, found.column]
    else:
        slopes = _matrix(other, [*found.pixels, found.column])
        right = reshape(slopes, (*pixels, 1, columns))
        axes = list(range(len(pixels)))
        kept = [*found.window, found.column]
    whole = (*pixels, count, columns)
    factors = [
        expand(make(Op.CAST, reduction.dtype, (each,)), whole)
        for each in (reshape(rows, (*pixels, count, 1)), right)
    ]
    total = reduce_axes(make(Op.MUL, reduction.dtype, tuple(factors)), Op.ADD, axes)
    apart = reshape(total, [sizes[axis] for axis in kept])
    order = sorted(range(len(kept)), key=kept.__getitem__)
    return total, reshape(permuted(apart, order), shape_of(reduction))


def _rows(found: Windows, sizes: Sequence[int]) -> UOp:
    """What each pixel's window shows, as a row: neighbors in it are neighbors in the image."""
    view, base = found.image.view, found.image.base
    image = _padded(view, base)
    assert found.image.channel is not None
    order = with_last(len(sizes_of(image)), found.image.channel)
    lines = permuted(image, order)
    *outer, width, channels = sizes_of(lines)
    stage = global_stage(reshape(lines, (*outer, width * channels)))  # one index for both
    kept = permuted(reshape(stage, sizes_of(lines)), inverse(order))
    seen = with_base(without_cast(view, image), image, kept)
    windows = _matrix(seen, [*found.pixels, *found.window])
    pixels = [sizes[axis] for axis in found.pixels]
    return reshape(windows, (*pixels, _count(sizes, found.window)))


def _padded(view: UOp, base: UOp) -> UOp:
    """An image as a view first pads it."""
    while view is not base:
        if view.op in MOVEMENT and view.src[0] is base:
            return view if view.op == Op.PAD else base
        view = view.src[0]
    return base


def _matrix(view: UOp, axes: Sequence[int]) -> UOp:
    """A factor along these axes alone, in this order; it is repeated along all others."""
    sizes = sizes_of(view)
    if not all(size == 1 for i, size in enumerate(sizes) if i not in axes):
        view = shrink(view, [(0, size if i in axes else 1) for i, size in enumerate(sizes)])
    rest = [axis for axis in range(len(sizes)) if axis not in axes]
    return reshape(permuted(view, [*axes, *rest]), [sizes[axis] for axis in axes])


def _aligned(matrix: UOp, alignment: int) -> UOp:
    """A value in memory, in rows that copies of boxes can read."""
    *outer, last = sizes_of(matrix)
    more = -last % (alignment // matrix.dtype.itemsize)
    whole = global_stage(pad(matrix, [*((0, 0) for _ in outer), (0, more)]) if more else matrix)
    return shrink(whole, [*((0, size) for size in outer), (0, last)]) if more else whole
