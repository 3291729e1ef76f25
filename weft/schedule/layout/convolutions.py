"""Convolutions in tensor graphs: sums of products of which a factor is an image.

`channels_last` asks here which axes of the factors are channels. A product without an axis that
both factors and the result have is a convolution if a factor is a value of several axes whose
pixels are not its last one, or are seen in windows. Its forward form and both gradients are alike:
they differ in which axes are summed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from weft.ir.dtypes import DType
from weft.ir.ops import MOVEMENT, Op
from weft.ir.uop import UOp
from weft.schedule.layout.view_axes import (
    axis_below,
    base_of_factor,
    permuted_factor,
    sizes_of,
    with_base,
)

# An image has channels and pixels, of one or several images.
LEAST_AXES: Final = 3
_PADDED: Final = frozenset((Op.PAD, Op.PERMUTE))


class ConvolutionFactor(NamedTuple):
    """A factor, what it is a view of, and the axis of that which has channels."""

    view: UOp
    base: UOp
    channel: int | None
    is_image: bool


class Convolution(NamedTuple):
    """Both factors, and the axis of the result that comes from one of them alone."""

    factors: tuple[ConvolutionFactor, ConvolutionFactor]
    column: int


def convolution_of(
    reduction: UOp, inputs: frozenset[DType], laid_out: Collection[UOp]
) -> Convolution | None:
    """The convolution that a reduction is; None for all others. Some images are `laid_out`."""
    views = views_of(reduction)
    if views is None:
        return None
    axes = reduction.arg[1]
    varying = [varies(view) for view in views]
    kept = [axis for axis in range(len(varying[0])) if axis not in axes]
    if any(varying[0][axis] and varying[1][axis] for axis in kept):
        return None  # a batch of products, or groups of channels
    factors: list[ConvolutionFactor] = []
    for view, each in zip(views, varying, strict=True):
        own = [axis for axis in kept if each[axis]]
        summed = [axis for axis in axes if each[axis]]
        factor = _factor(_without_padding(view), own, summed, laid_out)
        if factor is None or factor.base.dtype not in inputs:
            return None
        factors.append(factor)
    columns = [[axis for axis in kept if each[axis]] for each in varying]
    single = [each[0] for each in reversed(columns) if len(each) == 1]
    if not single or not any(factor.is_image for factor in factors):
        return None
    return Convolution((factors[0], factors[1]), max(single))


def views_of(reduction: UOp) -> tuple[UOp, UOp] | None:
    """The factors that a reduction sums the products of, each of the shape of the product.

    None where one is a number alone: that scales a sum.
    """
    value, orders = reduction.src[0], []
    while value.op == Op.PERMUTE:
        orders.append(value.arg)
        value = value.src[0]
    if reduction.arg[0] != Op.ADD or value.op != Op.MUL or not sizes_of(value):
        return None
    left, right = value.src
    if not (sizes_of(left) and sizes_of(right)):
        return None
    for order in reversed(orders):
        left, right = permuted_factor(left, order), permuted_factor(right, order)
    return left, right


def varies(factor: UOp) -> list[bool]:
    """Along which axes a factor is not repeated."""
    if factor.op == Op.EXPAND:
        return [size != 1 for size in sizes_of(factor.src[0])]
    if factor.op == Op.CAST:
        return varies(factor.src[0])
    if factor.op == Op.PERMUTE:
        inner = varies(factor.src[0])
        return [inner[axis] for axis in factor.arg]
    return [size != 1 for size in sizes_of(factor)]


def _without_padding(view: UOp) -> UOp:
    """A view of an image itself where it is one of the padded or permuted image, in memory.

    Outside of an image copies of boxes bring zeros, and they take axes in any order.
    """
    base = base_of_factor(view)
    if base.op != Op.STAGE:
        return view
    inner = base.src[0]
    while inner.op in _PADDED:
        inner = inner.src[0]
    is_view = inner is not base.src[0] and inner.op not in MOVEMENT
    return with_base(view, base, base.src[0]) if is_view else view


def _factor(
    view: UOp, own: Sequence[int], summed: Sequence[int], laid_out: Collection[UOp]
) -> ConvolutionFactor | None:
    base = base_of_factor(view)
    sizes = sizes_of(base)
    if not sizes:
        return None
    below = {axis: axis_below(view, base, axis) for axis in (*own, *summed)}
    alone = {at: axis for axis, at in below.items() if at is not None}
    has_windows = None in below.values()
    lines = [at for at, size in enumerate(sizes) if size > 1]
    channel: int | None = None
    if len(lines) <= 2 and lines and lines[-1] in alone:  # a matrix is read either way
        channel = lines[-1]
    elif len(own) == 1:
        channel = below[own[0]]
    elif len(summed) == 1:
        channel = below[summed[0]]
    if channel is None:
        # Images are what channels are not: one of both is summed.
        is_summed = alone.get(0) in summed
        others = [at for at in alone if 0 not in alone or (alone[at] in summed) != is_summed]
        channel = next((at for at in (1, len(sizes) - 1) if at in others and sizes[at] > 1), None)
    is_large = len(lines) >= LEAST_AXES
    is_image = is_large and (has_windows or len(sizes) > LEAST_AXES or base in laid_out)
    return ConvolutionFactor(view, base, channel, is_image)
