"""Convolutions: plain, transposed, of integers, with offsets, with state."""

from __future__ import annotations

from typing import Any

from weft.ir.dtypes import dtypes
from weft.ir.sizes import at_least, ceil_quotient, floor_quotient, minus, most, plus, times
from weft.onnx.dequantized import are_bytes, product_of
from weft.onnx.integers import Integers, convolution_sums
from weft.onnx.table import op
from weft.onnx.values import plain
from weft.tensor.checks import known
from weft.tensor.neural.convolution import convolved_padded
from weft.tensor.tensor import Tensor

Pairs = list[tuple[Any, Any]]  # ints, or symbolic sizes
# Windows and padding beyond this are mistakes of a file, and would only exhaust memory.
_MOST_PADDING = _MOST_REACH = 1 << 24


def window(call: Any, kernel: list[int], sizes: list[int]) -> tuple[list[int], list[int], Pairs]:
    """Strides, dilations and the padding of each spatial axis."""
    rank = len(kernel)
    strides = call.get("strides") or [1] * rank
    gaps = call.get("dilations") or [1] * rank
    how = call.get("auto_pad", "NOTSET")
    if any(number < 1 for number in (*strides, *gaps, *kernel)):
        raise call.error(
            f"strides {strides}, dilations {gaps}, kernel {kernel}", "all are above 0"
        )
    if len(strides) != rank or len(gaps) != rank:
        raise call.error(f"strides {strides}, dilations {gaps} for {rank} axes")
    if any(gap * (taps - 1) > _MOST_REACH for gap, taps in zip(gaps, kernel, strict=True)):
        raise call.error(f"a kernel of {kernel} with dilations {gaps}")
    if how in ("SAME_UPPER", "SAME_LOWER"):
        return strides, gaps, _same(kernel, sizes, strides, gaps, how == "SAME_UPPER")
    pads = call.get("pads") or [0] * (2 * rank)
    if how == "VALID":
        pads = [0] * (2 * rank)
    if len(pads) != 2 * rank or any(abs(number) > _MOST_PADDING for number in pads):
        raise call.error(f"pads {pads} for {rank} axes")
    return strides, gaps, list(zip(pads[:rank], pads[rank:], strict=True))


def _same(
    kernel: list[int], sizes: list[int], strides: list[int], gaps: list[int], is_upper: bool
) -> Pairs:
    pairs = []
    for extent, size, stride, gap in zip(kernel, sizes, strides, gaps, strict=True):
        reach = gap * (extent - 1) + 1
        count = ceil_quotient(size, stride)
        total = at_least(minus(plus(times(minus(count, 1), stride), reach), size), 0)
        less = floor_quotient(total, 2)
        more = minus(total, less)
        pairs.append((less, more) if is_upper else (more, less))
    return pairs


def short_strides(strides: list[int], sizes: list[int], pairs: Pairs) -> list[int]:
    """Strides up to the padded size: beyond it there is one window all the same."""
    sides = zip(strides, sizes, pairs, strict=True)
    padded = [(stride, plus(plus(size, low), high)) for stride, size, (low, high) in sides]
    return [min(stride, max(most(size), 1)) for stride, size in padded]


def flat(pairs: Pairs) -> list[int]:
    """Padding with the last axis first, as tensors take it."""
    return [number for pair in pairs[::-1] for number in pair]


@op("Conv", raw=True)
def conv(call: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    """Of two dequantized values the integers are convolved, and scaled for each channel."""
    if are_bytes(x, weight) and x.scale.numel() == 1:
        rank = x.ndim
        factor = weight.scale_along(0, rank, 1)
        if factor is not None:
            total = convolve_integers(call, x.integers, weight.integers)
            factor = factor * x.scale.reshape([1] * rank)
            scales = (x.scale, weight.scale)
            return product_of(call.run, total, scales, factor, bias, x.dtype)
    shift = None if bias is None else plain(call.run.tensor(bias))
    return convolve(call, plain(call.run.tensor(x)), plain(call.run.tensor(weight)), shift)


def convolve(call: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    kernel = list(weight.shape[2:])
    strides, gaps, pairs = window(call, kernel, list(x.shape[2:]))
    strides = short_strides(strides, list(x.shape[2:]), pairs)
    groups = call.get("group", 1)
    if x._wants or weight._wants:
        return x.conv2d(weight, bias, groups, strides, gaps, flat(pairs))
    result = convolved_padded(x, weight, groups, tuple(strides), tuple(gaps), pairs)
    return result if bias is None else result + bias.reshape(1, -1, *[1] * len(kernel))


def convolve_integers(call: Any, x: Integers, weight: Integers) -> Tensor:
    """The sums of a convolution of integers: of bytes where they have the form."""
    sizes = list(x.tensor.shape[2:])
    strides, gaps, pairs = window(call, list(weight.tensor.shape[2:]), sizes)
    strides, groups = short_strides(strides, sizes, pairs), call.get("group", 1)
    sums = convolution_sums(x, weight, groups, strides, gaps, pairs)
    if sums is not None:
        return sums
    return x.whole().conv2d(weight.whole(), None, groups, strides, gaps, flat(pairs))


@op("ConvInteger")
def conv_integer(
    call: Any,
    x: Tensor,
    weight: Tensor,
    x_zero: Tensor | None = None,
    w_zero: Tensor | None = None,
) -> Tensor:
    run = call.run
    return convolve_integers(
        call, Integers.of(run, x, x_zero), Integers.of(run, weight, w_zero, 0)
    )


@op("ConvTranspose")
def conv_transpose(call: Any, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    kernel, sizes = list(weight.shape[2:]), list(x.shape[2:])
    rank = len(kernel)
    strides, gaps, pairs = window(call, kernel, sizes)
    extra = call.get("output_padding") or [0] * rank
    whole: list[Any] = [
        plus(times(minus(size, 1), stride), gap * (extent - 1) + 1)
        for stride, size, gap, extent in zip(strides, sizes, gaps, kernel, strict=True)
    ]
    wanted = call.get("output_shape")
    how = call.get("auto_pad", "NOTSET")
    if wanted is None and how in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [times(size, stride) for size, stride in zip(sizes, strides, strict=True)]
    if wanted is not None:
        wanted = wanted[-rank:]
        pairs = []
        for size, more, target in zip(whole, extra, wanted, strict=True):
            total = known(minus(plus(size, more), target))
            less = max(total, 0) // 2
            pairs.append((less, total - less) if how == "SAME_UPPER" or total < 0
                         else (total - less, less))  # fmt: skip
    edges = [(0, 0), (0, 0)]
    for (low, high), more in zip(pairs, extra, strict=True):
        edges.append((-low, more - high))
    result = x.conv_transpose2d(weight, None, call.get("group", 1), strides, gaps, 0, 0).pad(edges)
    return result if bias is None else result + bias.reshape(1, -1, *[1] * rank)


@op("CausalConvWithState")
def causal_conv(
    call: Any, x: Tensor, weight: Tensor, bias: Tensor | None = None, past: Tensor | None = None
) -> Any:
    """A depthwise convolution over what came before, which is handed on."""
    reach = weight.shape[-1] - 1
    joined = x.pad([(0, 0), (0, 0), (reach, 0)]) if past is None else past.cat(x, dim=2)
    result = joined.conv2d(weight, bias, weight.shape[0])
    if call.get("activation", "none") in ("silu", "swish"):
        result = result.silu()
    return result, joined[:, :, joined.shape[2] - reach :]


@op("DeformConv")
def deform_conv(
    call: Any,
    x: Tensor,
    weight: Tensor,
    offset: Tensor,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Windows whose taps are moved by offsets, interpolated between pixels."""
    n, channels, height, width = x.shape
    rows, columns = weight.shape[2:]
    strides, gaps, pairs = window(call, [rows, columns], [height, width])
    out_h, out_w = offset.shape[2:]
    parts, groups = call.get("offset_group", 1), call.get("group", 1)
    moved = offset.reshape(n, parts, rows, columns, 2, out_h, out_w)
    axes = []
    for axis, (count, taps) in enumerate(((out_h, rows), (out_w, columns))):
        base = Tensor.arange(count, dtype=x.dtype, device=x.device) * strides[axis]
        tap = Tensor.arange(taps, dtype=x.dtype, device=x.device) * gaps[axis]
        base_shape, tap_shape = [1] * 6, [1] * 6
        base_shape[4 + axis], tap_shape[2 + axis] = count, taps
        axes.append(
            base.reshape(base_shape)
            + tap.reshape(tap_shape)
            - pairs[axis][0]
            + moved[:, :, :, :, axis]
        )
    pixels = x.reshape(n * parts, channels // parts, height, width)
    where = [each.reshape(n * parts, -1) for each in axes]
    points = bilinear(pixels, where[0], where[1])  # (n parts, channels, points)
    moved = points.reshape(n, parts, channels // parts, rows, columns, out_h, out_w)
    if mask is not None:
        moved = moved * mask.reshape(n, parts, 1, rows, columns, out_h, out_w)
    moved = moved.reshape(n, groups, channels // groups, rows, columns, out_h, out_w)
    kernels = weight.reshape(groups, weight.shape[0] // groups, channels // groups, rows, columns)
    result = Tensor.einsum("ngcijhw,gocij->ngohw", moved, kernels)
    result = result.reshape(n, weight.shape[0], out_h, out_w)
    return result if bias is None else result + bias.reshape(1, -1, 1, 1)


def bilinear(x: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Values between pixels at points (n, count), zero outside: (n, channels, count)."""
    n, channels, height, width = x.shape
    flat_pixels = x.reshape(n, channels, height * width)
    top, left = rows.floor(), columns.floor()
    result: Any = 0
    for down in (0, 1):
        for right in (0, 1):
            row, column = top + down, left + right
            share = (1 - (rows - row).abs()) * (1 - (columns - column).abs())
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            number = row.clamp(0, height - 1) * width + column.clamp(0, width - 1)
            index = number.cast(dtypes.int64).unsqueeze(1).expand(n, channels, rows.shape[1])
            value = flat_pixels.gather(2, index)
            result = result + inside.where(share, 0).unsqueeze(1) * value
    return result
