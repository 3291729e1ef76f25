"""Values that are integers times a scale, as DequantizeLinear makes them.

Most operators see the floats. Products and convolutions of two such values multiply the integers,
sum in 32 bits and scale once, which is what the quantized operators do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from weft.ir.dtypes import DType, dtypes
from weft.onnx.integers import Integers, along
from weft.tensor.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Dequantized:
    """Integers of 8 bits, their scale along the axis of their zero point, the dtype of floats."""

    integers: Integers
    scale: Tensor
    dtype: DType

    @property
    def shape(self) -> Any:
        return self.integers.tensor.shape

    @property
    def ndim(self) -> int:
        return self.integers.tensor.ndim

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
