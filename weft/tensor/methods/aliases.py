"""Methods that programs written for PyTorch expect, made of others that are defined elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.ir.dtypes import DType
from weft.ir.shapes import same_shape
from weft.tensor.checks import require_one_device

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def dim(self: Tensor) -> int:
    """Return the number of axes, as `ndim` does. PyTorch: dim; NumPy: ndim.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2]]).dim()
    2
    """
    return self.ndim


def cpu(self: Tensor) -> Tensor:
    """Return the value on the device CPU; itself where it is there already. PyTorch: cpu.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0], device="PYTHON").cpu().device
    'CPU'
    """
    return self.to("CPU")


def cuda(self: Tensor, device: int | None = None) -> Tensor:
    """Return the value on the device CUDA, or on that of a number. PyTorch: cuda.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0]).cuda().cpu().tolist()  # doctest: +SKIP
    [1.0]
    """
    return self.to("CUDA" if device is None else f"CUDA:{device}")


def type_(self: Tensor, dtype: DType | str) -> Tensor:
    """Convert the elements, as `cast` does. PyTorch: type; NumPy: astype.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.5]).type("int32").tolist()
    [1]
    """
    return self.cast(dtype)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """Convert the elements to the dtype of another tensor. PyTorch: type_as.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.5]).type_as(Tensor([1])).tolist()
    [1]
    """
    return self.cast(other.dtype)


def is_contiguous(self: Tensor) -> bool:
    """Return True: the memory layout does not show in a tensor. PyTorch: is_contiguous.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2], [3, 4]]).T.is_contiguous()
    True
    """
    return True


def equal(self: Tensor, other: Tensor) -> bool:
    """Return whether shapes and all elements are the same, as a Python bool: the value is read.

    NaN equals nothing. PyTorch: equal; NumPy: array_equal. `eq` compares elementwise.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2]).equal(Tensor([1, 2])), Tensor([1, 2]).equal(Tensor([1]))
    (True, False)
    """
    require_one_device("equal", self, other)
    return same_shape(self.shape, other.shape) and bool((self == other).all())
