"""Values that are integers times a scale, as DequantizeLinear makes them.

Most operators see the floats. Products and convolutions of two such values multiply the integers
and sum in 32 bits. What they give is `Scaled`: QuantizeLinear multiplies it once by a factor, as
the quantized operators do, and everything else sees floats.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.ir.dtypes import DType, dtypes
from weft.onnx.integers import Integers, along
from weft.tensor.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Dequantized:
    """Integers, their scale along the axis of their zero point, and the dtype of the floats."""

    integers: Integers
    scale: Tensor
    dtype: DType

    @property
    def shape(self) -> Any:
        return self.integers.tensor.shape

    @property
    def ndim(self) -> int:
        return self.integers.tensor.ndim

    @property
    def is_byte(self) -> bool:
        return self.integers.is_byte

    def floats(self) -> Tensor:
        """The values as any other operator sees them."""
        wide = dtypes.float32 if self.scale.dtype.itemsize <= 4 else self.scale.dtype
        scale = along(self.integers.tensor, self.scale.cast(wide), self.integers.axis)
        return (self.integers.whole().cast(wide) * scale).cast(self.dtype)

    def scale_along(self, axis: int, rank: int, to: int) -> Tensor | None:
        """The scale on an axis of a result of some rank; None if it lies along another one."""
        if self.scale.numel() == 1:
            return self.scale.reshape([1] * rank)
        if self.scale.ndim != 1 or self.integers.axis != axis % self.ndim:
            return None
        shape = [1] * rank
        shape[to] = -1
        return self.scale.reshape(shape)


def are_bytes(x: Any, y: Any) -> bool:
    """Whether both are integers of 8 bits and scales."""
    both = isinstance(x, Dequantized) and isinstance(y, Dequantized)
    return both and x.is_byte and y.is_byte


@dataclass(frozen=True, slots=True)
class Scaled:
    """Integers of 32 bits times a factor, plus a shift in floats if there is one."""

    total: Tensor
    factor: Tensor
    shift: Tensor | None
    dtype: DType

    @property
    def shape(self) -> Any:
        return self.total.shape

    @property
    def ndim(self) -> int:
        return self.total.ndim

    def floats(self) -> Tensor:
        """The values as any other operator sees them."""
        scaled = self.total.cast(dtypes.float32) * self.factor
        return (scaled if self.shift is None else scaled + self.shift).cast(self.dtype)

    def over(self, step: Tensor) -> Tensor:
        """The values divided by one number, in float32."""
        step = step.cast(dtypes.float32).reshape([1] * self.ndim)
        scaled = self.total.cast(dtypes.float32) * (self.factor / step)
        return scaled if self.shift is None else scaled + self.shift / step


def product_of(
    run: Any, total: Tensor, scales: tuple[Any, Any], factor: Tensor, bias: Any, dtype: DType
) -> Scaled:
    """Sums of products whose factors have these scales, and a bias along axis 1.

    A bias of integers that has the scale of the sums is added to them.
    """
    if bias is None:
        return Scaled(total, factor, None, dtype)
    shape = [1, -1] + [1] * (total.ndim - 2)
    if isinstance(bias, Dequantized) and bias.ndim == 1 and _is_of_scale(run, bias, scales):
        return Scaled(total + bias.integers.whole().reshape(shape), factor, None, dtype)
    shift = run.tensor(bias).cast(dtypes.float32)
    return Scaled(total, factor, shift.reshape(shape) if shift.ndim == 1 else shift, dtype)


def _is_of_scale(run: Any, bias: Dequantized, scales: tuple[Any, Any]) -> bool:
    own, left, right = (run.array_of(each) for each in (bias.scale, *scales))
    if own is None or left is None or right is None:
        return False
    return bool(np.allclose(own, left.reshape(-1) * right.reshape(-1), rtol=1e-4, atol=0))
