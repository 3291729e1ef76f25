"""Integers of 8 bits less a zero point, and sums of their products in 32 bits.

Machines multiply unsigned bytes by signed ones, four at a time. So the left factor is made
unsigned and the right one signed, both are packed into words along the axis that is summed over,
and what the zero points add is taken away from the sums:

    sum (x - a)(y - b)  =  sum x y  -  a sum y  -  b sum (x - a)

Of weights the words and their sums are made once, by the host. What does not have this form is
multiplied in 32 bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from weft.ir.dtypes import dtypes
from weft.support.errors import ShapeError
from weft.tensor.checks import known
from weft.tensor.neural.byte_products import BYTES, contract_bytes, multiply_bytes, packed
from weft.tensor.neural.convolution import convolved
from weft.tensor.tensor import Tensor

_EDGE: Final = 128  # what flips the signs of bytes
_EVERY_BYTE: Final = 0x01010101
# Channels from which words are not mostly zeros.
_LEAST_CHANNELS: Final = 3


def along(x: Tensor, scale: Tensor, axis: int, block: int = 0) -> Tensor:
    """A scale, or zero point, for each element: one for all, along an axis, or in blocks."""
    if scale.numel() == 1 and scale.ndim <= 1:
        return scale.reshape([1] * x.ndim)
    if scale.ndim == 1 and x.ndim:
        shape: list[Any] = [1] * x.ndim
        shape[axis] = scale.shape[0]
        return scale.reshape(shape)
    size, count = x.shape[axis], scale.shape[axis]
    assert isinstance(size, int) and isinstance(count, int)
    block = block or -(-size // max(count, 1))
    if scale.ndim != x.ndim or block < 1 or -(-size // block) != count:
        raise ShapeError(f"scales of shape {scale.shape} for {x.shape} in blocks of {block}")
    if size % block == 0:
        return scale.repeat_interleave(block, axis)
    numbers = Tensor.arange(size, dtype=dtypes.int64, device=x.device) // block
    return scale.index_select(axis, numbers)


@dataclass(frozen=True, slots=True)
class Integers:
    """A tensor of integers and its zero point along an axis, if there is one.

    `weight` is what the tensor was made of where that is a weight, and `known` the zero point
    where the host knows it.
    """

    tensor: Tensor
    zero: Tensor | None
    axis: int
    weight: Any = None
    known: Any = None

    @classmethod
    def of(cls, run: Any, tensor: Tensor, zero: Tensor | None, axis: int = 0) -> Integers:
        """Integers of operands of a node; what they were made of is looked up."""
        known = np.zeros(1, np.int64) if zero is None else run.known_array(zero)
        axis = axis % tensor.ndim if tensor.ndim else 0
        return cls(tensor, zero, axis, run.weight_of(tensor), known)

    @property
    def is_byte(self) -> bool:
        return self.tensor.dtype in (dtypes.int8, dtypes.uint8)

    @property
    def has_one_zero(self) -> bool:
        return self.zero is None or self.zero.numel() == 1

    def whole(self) -> Tensor:
        """The integers less their zero points, in 32 bits."""
        wide = self.tensor.cast(dtypes.int32)
        if self.zero is None or (self.known is not None and not self.known.any()):
            return wide
        return wide - along(self.tensor, self.zero.cast(dtypes.int32), self.axis)

    def bytes_of(self, is_signed: bool) -> Tensor:
        """The integers as bytes with a sign or without, which the zero point is moved with."""
        dtype = dtypes.int8 if is_signed else dtypes.uint8
        if self.tensor.dtype is dtype:
            return self.tensor
        return (self.tensor.bitcast(dtypes.uint8) ^ _EDGE).bitcast(dtype)

    def zero_of(self, is_signed: bool) -> Tensor | int:
        """The zero point of such bytes; a number where it is one and known."""
        has_sign = self.tensor.dtype is dtypes.int8
        moved = 0 if has_sign is is_signed else _EDGE if has_sign else -_EDGE
        if self.known is not None and self.known.size == 1:
            return int(self.known.reshape(())) + moved
        if self.known is not None and not (self.known.astype(np.int64) + moved).any():
            return 0
        assert self.zero is not None
        return along(self.tensor, self.zero.cast(dtypes.int32), self.axis) + moved


def product_sums(x: Integers, y: Integers, is_transposed: bool = False) -> Tensor:
    """The product of matrices (…, n, k) and (…, k, m), or (…, m, k) if y is transposed."""
    inner = -1 if is_transposed else -2
    if not _fits_product(x, y, inner):
        right = y.whole().transpose(-1, -2) if is_transposed else y.whole()
        return x.whole().matmul(right)
    left = x.bytes_of(is_signed=False)
    words = _words(y, inner)
    left = left.contiguous()  # else what makes its bytes would be cut in four
    total = multiply_bytes(packed(left, -1), words.transpose(-1, -2) if is_transposed else words)
    x_zero, y_zero = x.zero_of(is_signed=False), y.zero_of(is_signed=True)
    if is_transposed and isinstance(y_zero, Tensor):
        y_zero = y_zero.transpose(-1, -2)
    if not _is_nothing(x_zero):
        sums = _sums(y, (inner,))
        total = total - sums.unsqueeze(-2) * x_zero
    if not _is_nothing(y_zero):
        rows = left.cast(dtypes.int32).sum(-1, keepdim=True, dtype=dtypes.int32)
        total = total - (rows - x_zero * int(x.tensor.shape[-1])) * y_zero
    return total


def _fits_product(x: Integers, y: Integers, inner: int) -> bool:
    """Whether both are matrices of bytes, with zero points that do not change along the sum."""
    if not (x.is_byte and y.is_byte and x.tensor.ndim > 1 and y.tensor.ndim > 1):
        return False
    last = x.tensor.ndim - 1
    is_along = x.has_one_zero or (x.zero is not None and x.zero.ndim == 1 and x.axis != last)
    outer = y.tensor.ndim + (-2 if inner == -1 else -1)
    is_outer = y.has_one_zero or (y.zero is not None and y.zero.ndim == 1 and y.axis == outer)
    depth = x.tensor.shape[-1]
    is_known = isinstance(depth, int) and depth == y.tensor.shape[inner] and depth > 0
    return is_along and is_outer and is_known


def convolution_sums(
    x: Integers,
    weight: Integers,
    groups: int,
    strides: list[int],
    gaps: list[int],
    edges: list[tuple[int, int]],
) -> Tensor | None:
    """The sums of a convolution (batch, in, …) by (out, in / groups, …); None if no bytes fit."""
    weight_zero = weight.zero_of(is_signed=True) if weight.is_byte else 0
    channels = known(weight.tensor.shape[1])
    is_grouped = groups > 1 and (channels % BYTES or not _is_nothing(weight_zero))
    fits = x.is_byte and weight.is_byte and x.has_one_zero and channels >= _LEAST_CHANNELS
    has_axis = weight.has_one_zero or (weight.zero is not None and weight.axis == 0)
    if not fits or is_grouped or not has_axis or not isinstance(x.tensor.shape[1], int):
        return None
    rank = x.tensor.ndim - 2
    zero = x.zero_of(is_signed=False)
    fill = zero * _EVERY_BYTE if isinstance(zero, Tensor) else _wrapped(zero * _EVERY_BYTE)
    words = packed(x.bytes_of(is_signed=False).contiguous(), 1)  # else sums would be cut in four
    if any(map(any, edges)):  # what is past the edge is the zero point in every byte
        room = [(0, 0), (0, 0), *edges]
        words = words.pad(room) if _is_nothing(fill) else (words - fill).pad(room) + fill
    steps = (tuple(strides), tuple(gaps))
    total = convolved(words, _words(weight, 1), groups, *steps, contract_bytes)
    if not _is_nothing(zero):
        axes = tuple(range(1, weight.tensor.ndim))
        total = total - _sums(weight, axes).reshape(1, -1, *[1] * rank) * zero
    if not _is_nothing(weight_zero):
        column = weight_zero
        if isinstance(column, Tensor):
            column = column.reshape(1, -1, *[1] * rank)
        shape = (1, *words_shape(weight))
        ones = Tensor.full(shape, _EVERY_BYTE, dtype=dtypes.int32, device=words.device)
        taps = math.prod(known(size) for size in weight.tensor.shape[1:])
        rows = convolved(_only(words, channels), ones, 1, *steps, contract_bytes)
        total = total - (rows - zero * taps) * column
    return total


def words_shape(weight: Integers) -> tuple[int, ...]:
    """The shape of the words of one output channel."""
    inner, *taps = (known(size) for size in weight.tensor.shape[1:])
    return (-(-inner // BYTES), *taps)


def _only(words: Tensor, channels: int) -> Tensor:
    """Words whose bytes behind the last channel are zero, whatever the padding put there."""
    rest = channels % BYTES
    if not rest:
        return words
    masks = np.full(-(-channels // BYTES), -1, np.int32)
    masks[-1] = (1 << 8 * rest) - 1
    return words & Tensor(masks, device=words.device).reshape(1, -1, *[1] * (words.ndim - 2))


def _is_nothing(zero: Tensor | int) -> bool:
    return isinstance(zero, int) and zero == 0


def _wrapped(number: int) -> int:
    """A number as int32 has it."""
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)


def _words(x: Integers, axis: int) -> Tensor:
    """Signed bytes packed along an axis; those of a weight are packed by the host."""
    if x.weight is None:
        return packed(x.bytes_of(is_signed=True), axis)
    axis = axis % x.tensor.ndim
    made = x.weight.derived(f"words along {axis}", lambda array: packed_array(array, axis))
    return Tensor(made, device=x.tensor.device)


def _sums(x: Integers, axes: tuple[int, ...]) -> Tensor:
    """Signed bytes summed over axes."""
    if x.weight is None:
        signed = x.bytes_of(is_signed=True).cast(dtypes.int32)
        return signed.sum(axes, dtype=dtypes.int32)
    made = x.weight.derived(
        f"sums over {axes}", lambda array: signed_array(array).sum(axes, dtype=np.int32)
    )
    return Tensor(np.asarray(made), device=x.tensor.device)


def signed_array(array: Any) -> Any:
    """Bytes of either kind as signed ones."""
    return array if array.dtype == np.int8 else (array ^ np.uint8(_EDGE)).view(np.int8)


def packed_array(array: Any, axis: int) -> Any:
    """Signed bytes of an array as words along an axis."""
    room = [(0, 0)] * array.ndim
    room[axis] = (0, -array.shape[axis] % BYTES)
    padded = np.moveaxis(np.pad(signed_array(array), room), axis, -1)
    words = np.ascontiguousarray(padded).view("<i4")
    return np.ascontiguousarray(np.moveaxis(words, -1, axis))
