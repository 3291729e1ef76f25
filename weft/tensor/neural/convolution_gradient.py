"""The gradients of a convolution, written as what they are: a convolution and a matrix product.

Reverse mode would give the same numbers through windows that are added up again. As convolutions
of the output's gradient with the flipped weight, and as a product with the windows of the padded
input, they take the path of their forward forms: few kernels that multiply blocks.
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, NamedTuple

from weft.ir.build import Size
from weft.ir.dtypes import DType
from weft.ir.sizes import ceil_quotient, minus, plus
from weft.tensor.checks import known
from weft.tensor.methods.matmul import contract
from weft.tensor.neural.windows import apart, pad_or_cut, windows

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


Sizes = tuple[Size, ...]


class Shape(NamedTuple):
    """What a convolution is, beside its operands: per spatial axis, and its groups."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    gaps: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]
    groups: int = 1


def with_slopes(result: Tensor, x: Tensor, weight: Tensor, shape: Shape) -> Tensor:
    """The result of a convolution, with these gradients for its operands."""
    from weft.tensor.autodiff.custom_gradient import with_body

    return with_body(
        result,
        (x, weight),
        shape,
        lambda inputs, _, slope: (
            _slope_of_input(slope, inputs[1], inputs[0].shape[2:], shape),
            _slope_of_weight(slope, inputs[1], inputs[0], shape),
        ),
    )


def transposed(
    x: Tensor, weight: Tensor, shape: Shape, sizes: Sizes, dtype: DType | None = None
) -> Tensor:
    """A convolution the other way: what its input's gradient is, with gradients of its own.

    Each of them is a form of the same convolution, so none multiplies zeros between elements.
    `shape` is that convolution, whose windows over `sizes` elements are as many as x has.
    """
    from weft.tensor.autodiff.custom_gradient import with_body
    from weft.tensor.neural.convolution import convolved

    def slopes(inputs: tuple[Tensor, ...], _: Tensor, slope: Tensor) -> tuple[Tensor, Tensor]:
        given, by = inputs
        padded = slope.pad([(0, 0), (0, 0), *shape.edges])
        of_input = convolved(padded, by, shape.groups, shape.strides, shape.gaps)
        return of_input, _slope_of_weight(given, by, slope, shape)

    result = _slope_of_input(x, weight, sizes, shape, dtype)
    return with_body(result, (x, weight), ("transposed", shape, sizes), slopes)


def _slope_of_input(
    slope: Tensor,
    weight: Tensor,
    sizes: Sizes,
    shape: Shape,
    dtype: DType | None = None,
) -> Tensor:
    """The output's gradient by the flipped weight, for each phase of the strides by itself.

    Elements of the input whose positions are the same but for a multiple of the stride meet the
    same taps of the weight, and no others; between them they meet each tap once.
    """
    from weft.tensor.neural.convolution import with_zeros_between

    steps = tuple(
        step if gap == 1 else 1 for step, gap in zip(shape.strides, shape.gaps, strict=True)
    )
    rest = tuple(step // by for step, by in zip(shape.strides, steps, strict=True))
    dilated = with_zeros_between(slope, rest)
    counts = tuple(ceil_quotient(size, step) for size, step in zip(sizes, steps, strict=True))
    total: Tensor | None = None
    for starts in itertools.product(*map(range, steps)):
        part = _phase(dilated, weight, counts, shape, steps, starts, dtype)
        if part is not None:
            part = apart(part, steps, starts)
            total = part if total is None else total + part
    assert total is not None, "the first tap of a weight is in some phase"
    return total.shrink((None, None, *((0, size) for size in sizes)))


def _phase(
    slope: Tensor,
    weight: Tensor,
    counts: Sizes,
    shape: Shape,
    steps: tuple[int, ...],
    starts: tuple[int, ...],
    dtype: DType | None,
) -> Tensor | None:
    """The gradient of the elements at start + step * i, `counts` of them along each axis.

    None where they meet no tap.
    """
    from weft.tensor.neural.convolution import convolved

    rank = len(shape.kernel)
    taps: list[slice] = []
    borders: list[tuple[int, Size]] = [(0, 0), (0, 0)]
    for axis, (size, gap, (low, _)) in enumerate(
        zip(shape.kernel, shape.gaps, shape.edges, strict=True)
    ):
        first = (starts[axis] + low) % steps[axis]
        taps.append(slice(first, None, steps[axis]))
        reach = gap * max((size - 1 - first) // steps[axis], 0)
        before = reach - (starts[axis] + low) // steps[axis]
        after = minus(plus(counts[axis], reach - before), slope.shape[2 + axis])
        borders.append((before, after))
    some = weight[(slice(None), slice(None), *taps)]
    if 0 in some.shape:
        return None
    flipped = _turned(some.flip(tuple(range(2, 2 + rank))), shape.groups).contiguous()
    product = functools.partial(contract, dtype=dtype)
    ones, room = (1,) * rank, pad_or_cut(slope, borders)
    found = convolved(room, flipped, shape.groups, ones, shape.gaps, product)
    return found if max(steps, default=1) == 1 else found.contiguous()


def _turned(weight: Tensor, groups: int) -> Tensor:
    """A weight (out, in / groups, …) as (in, out / groups, …): groups stay by themselves."""
    if groups == 1:
        return weight.transpose(0, 1)
    inner, *taps = weight.shape[1:]
    outputs = known(weight.shape[0]) // groups
    grouped = weight.reshape((groups, outputs, inner, *taps)).transpose(1, 2)
    return grouped.reshape((groups * known(inner), outputs, *taps))


def _slope_of_weight(slope: Tensor, weight: Tensor, x: Tensor, shape: Shape) -> Tensor:
    """The windows by the output's gradient, summed over positions and the batch.

    The padded input is in memory, so that windows are read there without a mask: the same rows
    for all taps. Outputs are the last axis, along which products are vectors.
    """
    rank = len(shape.kernel)
    is_padded = any(map(any, shape.edges))
    padded = x.pad([(0, 0), (0, 0), *shape.edges]).contiguous() if is_padded else x
    # (batch, in, positions…, taps…) to (in, taps…, 1, batch, positions…)
    seen = windows(padded, shape.kernel, shape.strides, shape.gaps)
    if shape.groups > 1:
        return _slope_of_grouped(slope, weight, seen, shape.groups)
    order = (1, *range(2 + rank, 2 + 2 * rank), 0, *range(2, 2 + rank))
    left = seen.permute(order).unsqueeze(1 + rank)
    right = slope.transpose(0, 1)  # (out, batch, positions…)
    reduced = tuple(range(2 + rank, 3 + 2 * rank))
    total = contract(left, right, reduced, None).contiguous()
    return total.permute((1 + rank, *range(1 + rank)))


def _slope_of_grouped(slope: Tensor, weight: Tensor, seen: Tensor, groups: int) -> Tensor:
    """The same for each group by itself."""
    rank = weight.ndim - 2
    batch, inputs, *rest = seen.shape
    outputs, positions = known(weight.shape[0]) // groups, slope.shape[2:]
    grouped = seen.reshape((batch, groups, known(inputs) // groups, *rest))
    # (group, in / groups, taps…, 1, batch, positions…)
    order = (1, 2, *range(3 + rank, 3 + 2 * rank), 0, *range(3, 3 + rank))
    left = grouped.permute(order).unsqueeze(2 + rank)
    ones = [1] * (1 + rank)
    right = slope.transpose(0, 1).reshape((groups, *ones, outputs, batch, *positions))
    reduced = tuple(range(3 + rank, 4 + 2 * rank))
    total = contract(left, right, reduced, None).contiguous()
    return total.permute((0, 2 + rank, *range(1, 2 + rank))).reshape(weight.shape)
