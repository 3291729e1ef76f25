"""Convolutions, as windows by movement ops, a product and a reduction.

The axes are (batch, channels, spatial…); any number of spatial axes works, in spite of the names.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from weft.ir.build import Size
from weft.ir.dtypes import DType, dtypes, promote
from weft.ir.ops import MOVEMENT, Op
from weft.ir.sizes import least, minus, plus, times
from weft.support.errors import ArgumentError, ShapeError
from weft.tensor.autocast import lowered
from weft.tensor.checks import known, least_fix
from weft.tensor.methods.matmul import contract
from weft.tensor.neural import convolution_gradient
from weft.tensor.neural.windows import window_count, windows
from weft.tensor.small_floats import is_small

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

Ints = int | Sequence[int]


def each_axis(name: str, value: Ints, count: int) -> tuple[int, ...]:
    """A number for each spatial axis."""
    listed = (value,) * count if isinstance(value, int) else tuple(value)
    if len(listed) != count:
        raise ArgumentError(
            f"{name}: {len(listed)} numbers for {count} spatial axes",
            rule="give one number, or one for each spatial axis",
        )
    return listed


def padding_pairs(name: str, padding: Ints, count: int) -> list[tuple[int, int]]:
    """Padding of each spatial axis: one number, one for each axis, or flat with the last first."""
    if isinstance(padding, str):
        raise ArgumentError(
            f"{name}: padding {padding!r}",
            rule='padding is numbers; convolutions also take "same" and "valid"',
        )
    if not isinstance(padding, int) and len(padding) == 2 * count and count > 0:
        flat = [int(each) for each in padding]
        return [(flat[i], flat[i + 1]) for i in range(0, 2 * count, 2)][::-1]
    return [(each, each) for each in each_axis(name, padding, count)]


def named_padding(
    name: str, word: str, kernel: Sequence[int], strides: Sequence[int], gaps: Sequence[int]
) -> list[tuple[int, int]]:
    """The padding of each spatial axis that "same" and "valid" mean."""
    if word not in ("same", "valid"):
        raise ArgumentError(
            f"{name}: unknown padding {word!r}", rule='padding is ints, "same" or "valid"'
        )
    if word == "valid":
        return [(0, 0)] * len(kernel)
    if set(strides) - {1}:
        raise ArgumentError(
            f'{name}: padding "same" with stride {tuple(strides)}',
            rule="the size stays the same only where the stride is 1",
        )
    totals = [gap * (size - 1) for size, gap in zip(kernel, gaps, strict=True)]
    return [(total // 2, total - total // 2) for total in totals]


def conv2d(
    self: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    groups: int = 1,
    stride: Ints = 1,
    dilation: Ints = 1,
    padding: Ints | str = 0,
    dtype: DType | str | None = None,
) -> Tensor:
    """Slide a kernel over the spatial axes: (batch, in, …) with weight (out, in / groups, …).

    `padding` is a number, one for each axis or flat as `pad` has it, "valid" (none) or "same": the
    size stays, and the stride is 1.

    >>> from weft.tensor import Tensor
    >>> x = Tensor([[[[1.0, 2.0, 3.0]]]])
    >>> x.conv2d(Tensor([[[[1.0, 1.0]]]])).tolist()
    [[[[3.0, 5.0]]]]
    """
    if dtype is None:
        self, weight, bias = lowered(self, weight, bias)
        if bias is not None and is_small(self) and is_small(weight):  # the sum is rounded once
            wide = conv2d(self, weight, None, groups, stride, dilation, padding, dtypes.float32)
            return biased(wide, bias, promote(self.dtype, weight.dtype, bias.dtype))
    kernel = tuple(known(size) for size in weight.shape[2:])
    rank = len(kernel)
    _require_channels(self, weight, groups, rank)
    strides, gaps = each_axis("conv2d", stride, rank), each_axis("conv2d", dilation, rank)
    edges = (
        named_padding("conv2d", padding, kernel, strides, gaps)
        if isinstance(padding, str)
        else padding_pairs("conv2d", padding, rank)
    )
    result = convolved_padded(self, weight, groups, strides, gaps, edges, dtype)
    has_slopes = self.dtype.is_float and weight.dtype.is_float
    if has_slopes and least(result.numel()):
        shape = convolution_gradient.Shape(kernel, strides, gaps, tuple(edges), groups)
        result = convolution_gradient.with_slopes(result, self, weight, shape)
    return result if bias is None else biased(result, bias, result.dtype)


def biased(x: Tensor, bias: Tensor, dtype: DType) -> Tensor:
    """x with a number added to each channel, in a dtype; of wide sums of halves, for instance."""
    total = x + bias.reshape((1, -1, *[1] * (x.ndim - 2)))
    return total.cast(dtype) if total.dtype.is_float and dtype.bits < 32 else total


def convolved_padded(
    self: Tensor,
    weight: Tensor,
    groups: int,
    strides: tuple[int, ...],
    gaps: tuple[int, ...],
    edges: Sequence[tuple[Size, Size]],
    dtype: DType | str | None = None,
) -> Tensor:
    """A convolution whose gradient is that of the ops it is made of: built sooner, slower itself.

    Loaded models use it, which are rarely trained, and wait for nothing that they do not use.
    """
    kernel = tuple(known(size) for size in weight.shape[2:])
    _require_channels(self, weight, groups, len(kernel))
    x = self.contiguous() if math.prod(kernel) > 1 and _is_turned(self) else self
    is_padded = any(amount != 0 for pair in edges for amount in pair)
    padded = x.pad([(0, 0), (0, 0), *edges]) if is_padded else x
    require_windows("conv2d", padded, kernel, strides, gaps)
    product = functools.partial(contract, dtype=dtype)
    return convolved(padded, weight, groups, strides, gaps, product)


def _is_turned(x: Tensor) -> bool:
    """Whether a view has another last axis than its memory, as one of channels that come last.

    Each of its elements is in many windows, so a copy in the order of the axes is soon paid for.
    """
    node = x.uop
    while node.op in MOVEMENT:
        if node.op == Op.PERMUTE and node.arg[-1] != len(node.arg) - 1:
            return True
        if node.op in (Op.RESHAPE, Op.EXPAND):
            return False
        node = node.src[0]
    return False


def convolved(
    padded: Tensor,
    weight: Tensor,
    groups: int,
    strides: tuple[int, ...],
    gaps: tuple[int, ...],
    contracted: Callable[[Tensor, Tensor, tuple[int, ...]], Tensor] = contract,
) -> Tensor:
    """The sums of products of windows and a weight, as `contracted` makes them."""
    kernel = tuple(known(size) for size in weight.shape[2:])
    rank = len(kernel)
    batch, outputs = padded.shape[0], known(weight.shape[0])
    inner = known(weight.shape[1])
    taps = windows(padded, kernel, strides, gaps)  # (batch, in, positions…, taps…)
    spatial = taps.shape[2 : 2 + rank]
    # (batch, group, 1, positions…, in / groups, taps…)
    grouped = taps.reshape((batch, groups, inner, *spatial, *kernel))
    order = [0, 1, *range(3, 3 + rank), 2, *range(3 + rank, 3 + 2 * rank)]
    left = grouped.permute(order).unsqueeze(2)
    right = weight.reshape((1, groups, outputs // groups, *[1] * rank, inner, *kernel))
    axes = tuple(range(3 + rank, 4 + 2 * rank))
    return contracted(left, right, axes).reshape((batch, outputs, *spatial))


def _require_channels(self: Tensor, weight: Tensor, groups: int, rank: int) -> None:
    fits = (
        self.ndim == weight.ndim == rank + 2
        and self.shape[1] == groups * weight.shape[1]
        and known(weight.shape[0]) % groups == 0
    )
    if not fits:
        raise ShapeError(
            "conv2d: input and weight do not fit",
            facts=[
                ("input", self.shape, "(batch, in, …)"),
                ("weight", weight.shape, "(out, in / groups, …)"),
                ("groups", groups),
            ],
            rule="input channels = groups * weight.shape[1], and groups divides the outputs",
        )


def require_windows(
    name: str,
    x: Tensor,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
) -> None:
    """Refuse windows that do not fit; of a symbolic size, into its least value."""
    sizes = x.shape[-len(kernel) :] if kernel else ()
    for size, taps, step, gap in zip(sizes, kernel, stride, dilation, strict=True):
        is_legal = taps >= 1 and step >= 1 and gap >= 1
        if is_legal and least(window_count(size, taps, step, gap)) >= 1:
            continue
        shown = str(size) if isinstance(size, int) else f"{least(size)} (the least {size})"
        raise ShapeError(
            f"{name}: no window of {taps} taps fits in {shown} elements",
            facts=[
                ("padded input", x.shape),
                ("kernel", kernel),
                ("stride", stride),
                ("dilation", dilation),
            ],
            rule="size >= dilation * (kernel - 1) + 1 on every spatial axis, all from 1 on",
            fix=least_fix(size),
        )


def conv_transpose2d(
    self: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    groups: int = 1,
    stride: Ints = 1,
    dilation: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
) -> Tensor:
    """Spread each element by a kernel: the gradient of conv2d as a layer of its own.

    The weight is (in, out / groups, …). PyTorch: nn.functional.conv_transpose2d.

    >>> from weft.tensor import Tensor
    >>> Tensor.ones(1, 1, 1, 2).conv_transpose2d(Tensor.ones(1, 1, 1, 2)).tolist()
    [[[[1.0, 2.0, 1.0]]]]
    """
    self, weight, bias = lowered(self, weight, bias)
    kernel = tuple(known(size) for size in weight.shape[2:])
    rank = len(kernel)
    strides, gaps = each_axis("conv", stride, rank), each_axis("conv", dilation, rank)
    extra = each_axis("conv", output_padding, rank)
    edges = padding_pairs("conv", padding, rank)
    if _is_strided(self, weight, strides, groups):
        wide = None if bias is None or not is_small(self) else dtypes.float32
        result = _transposed(self, weight, groups, strides, gaps, edges, extra, wide)
        return result if bias is None else biased(result, bias, promote(self.dtype, bias.dtype))
    inputs, outputs = known(weight.shape[0]), known(weight.shape[1])
    flipped = weight.reshape((groups, inputs // groups, outputs, *kernel)).transpose(1, 2)
    flipped = flipped.reshape((groups * outputs, inputs // groups, *kernel))
    flipped = flipped.flip(tuple(range(2, 2 + rank))) if rank else flipped
    dilated = with_zeros_between(self, strides)
    borders = [
        (gap * (taps - 1) - low, gap * (taps - 1) - high + more)
        for gap, taps, (low, high), more in zip(gaps, kernel, edges, extra, strict=True)
    ]
    padded = dilated.pad([(0, 0), (0, 0), *borders])
    return padded.conv2d(flipped, bias, groups, dilation=gaps)


def _is_strided(x: Tensor, weight: Tensor, strides: tuple[int, ...], groups: int) -> bool:
    is_float = x.dtype.is_float and weight.dtype is x.dtype
    fits = x.ndim == weight.ndim and x.shape[1] == weight.shape[0]
    fits = fits and groups >= 1 and known(weight.shape[0]) % groups == 0
    return max(strides, default=1) > 1 and is_float and fits and least(x.numel()) > 0


def _transposed(
    self: Tensor,
    weight: Tensor,
    groups: int,
    strides: tuple[int, ...],
    gaps: tuple[int, ...],
    edges: Sequence[tuple[int, int]],
    extra: tuple[int, ...],
    dtype: DType | None,
) -> Tensor:
    """A transposed convolution with strides."""
    kernel = tuple(known(size) for size in weight.shape[2:])
    sizes = []
    for axis, (taps, step, gap, (low, high), more) in enumerate(
        zip(kernel, strides, gaps, edges, extra, strict=True)
    ):
        whole = times(minus(self.shape[2 + axis], 1), step)
        sizes.append(plus(whole, gap * (taps - 1) + 1 + more - low - high))
    if min(map(least, sizes)) < 1:
        raise ShapeError(
            "conv_transpose2d: nothing is left of the output",
            facts=[("input", self.shape), ("kernel", kernel), ("padding", tuple(edges))],
            rule="the padding takes fewer elements away than there are",
        )
    inside = tuple((low, high - more) for (low, high), more in zip(edges, extra, strict=True))
    shape = convolution_gradient.Shape(kernel, strides, gaps, inside, groups)
    return convolution_gradient.transposed(self, weight, shape, tuple(sizes), dtype)


def with_zeros_between(self: Tensor, strides: tuple[int, ...]) -> Tensor:
    """Elements of the spatial axes as far apart as strides, with zeros between them."""
    x = self
    for number, stride in enumerate(strides):
        if stride == 1:
            continue
        axis = 2 + number
        apart = x.unsqueeze(axis + 1)
        room = [(0, 0)] * apart.ndim
        room[axis + 1] = (0, stride - 1)
        box: list[Any] = [None] * x.ndim
        box[axis] = (0, plus(times(minus(x.shape[axis], 1), stride), 1))
        x = apart.pad(room).flatten(axis, axis + 1).shrink(box)
    return x


def sequential(self: Tensor, ll: Sequence[Callable[[Any], Any]]) -> Tensor:
    """Apply functions one after another.

    >>> from weft.tensor import Tensor
    >>> Tensor([-1.0, 4.0]).sequential([Tensor.relu, Tensor.sqrt]).tolist()
    [0.0, 2.0]
    """
    result: Any = self
    for function in ll:
        result = function(result)
    made: Tensor = result
    return made
