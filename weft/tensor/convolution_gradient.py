"""The gradients of a convolution, written as what they are: a convolution and a matrix product.

Reverse mode would give the same numbers through windows that are added up again. As a convolution
of the output's gradient with the turned weight, and as a product with the windows in memory, they
take the path of their forward forms: few kernels that multiply blocks.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from weft.ir.ops import Op
from weft.ir.uop import UOp, make
from weft.tensor.checks import known
from weft.tensor.windows import windows

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

# Bytes of windows that are in memory at a time; longer batches are taken in parts.
MOST_BYTES: Final = 64 << 20
_BODIES: Final[dict[tuple[Any, ...], Any]] = {}
_MOST_BODIES: Final = 256


class Shape(NamedTuple):
    """What a convolution is, beside its operands; all per spatial axis."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    gaps: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]


def with_slopes(result: Tensor, x: Tensor, weight: Tensor, shape: Shape) -> Tensor:
    """The result of a convolution, with these gradients for its operands.

    The graph of the gradients depends on shapes and dtypes alone, so it is built once for each.
    """
    from weft.tensor.custom_gradient import with_gradient

    key = (shape, x.shape, x.dtype, weight.shape, weight.dtype, result.dtype, x.device)
    arg = _BODIES.get(key)
    if arg is None:
        node = with_gradient(
            [result.uop],
            [x.uop, weight.uop],
            lambda inputs, _, slope: (
                _slope_of_input(slope, inputs[1], inputs[0], shape),
                _slope_of_weight(slope, inputs[1], inputs[0], shape),
            ),
            x.device,
        )[0]
        if len(_BODIES) >= _MOST_BODIES:
            _BODIES.pop(next(iter(_BODIES)))
        arg = _BODIES[key] = node.arg
    made: UOp = make(Op.CUSTOM_GRADIENT, result.dtype, (result.uop, x.uop, weight.uop), arg)
    return result._new(made)


def _slope_of_input(slope: Tensor, weight: Tensor, x: Tensor, shape: Shape) -> Tensor:
    """The output's gradient, with zeros between where windows skip, by the turned weight."""
    from weft.tensor.nn_ops import convolved, with_zeros_between

    rank = len(shape.kernel)
    turned = weight.flip(tuple(range(2, 2 + rank))).transpose(0, 1).contiguous()
    spread = with_zeros_between(slope, shape.strides)
    borders: list[tuple[int, int]] = [(0, 0), (0, 0)]
    for number, (taps, gap, (low, _)) in enumerate(
        zip(shape.kernel, shape.gaps, shape.edges, strict=True)
    ):
        reach = gap * (taps - 1)
        size, have = known(x.shape[2 + number]), known(spread.shape[2 + number])
        borders.append((reach - low, size + low - have))
    return convolved(spread.pad(borders), turned, 1, (1,) * rank, shape.gaps, None)


def _slope_of_weight(slope: Tensor, weight: Tensor, x: Tensor, shape: Shape) -> Tensor:
    """The output's gradient by the windows, summed over positions and, in parts, the batch."""
    rank = len(shape.kernel)
    padded = x.pad([(0, 0), (0, 0), *shape.edges]) if any(map(any, shape.edges)) else x
    batch, outputs = known(x.shape[0]), known(weight.shape[0])
    places = math.prod(known(size) for size in slope.shape[2:])
    taps = math.prod(known(size) for size in weight.shape[1:])
    size = max(places * taps * x.dtype.itemsize, 1)
    most = max(MOST_BYTES // size, 1)
    total: Tensor | None = None
    for start in range(0, batch, most):
        end = min(start + most, batch)
        some, part = padded[start:end], slope[start:end]
        # (batch, in, positions…, taps…) to (batch, positions…, taps…, in)
        order = (0, *range(2, 2 + 2 * rank), 1)
        seen = windows(some, shape.kernel, shape.strides, shape.gaps).permute(order).contiguous()
        right = seen.reshape(((end - start) * places, taps))
        left = part.transpose(0, 1).reshape((outputs, (end - start) * places))
        product = left @ right
        total = product if total is None else total + product
    assert total is not None
    turned = total.contiguous().reshape((outputs, *shape.kernel, known(weight.shape[1])))
    return turned.permute((0, 1 + rank, *range(1, 1 + rank)))
