"""Methods that programs written for PyTorch expect, made of others that are defined elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.ir.dtypes import DType
from weft.ir.shapes import same_shape
from weft.tensor.autodiff.leaves import is_leaf
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


_OLD_NAMES = {
    "float32": "Float",
    "float64": "Double",
    "float16": "Half",
    "bfloat16": "BFloat16",
    "int64": "Long",
    "int32": "Int",
    "int16": "Short",
    "int8": "Char",
    "uint8": "Byte",
    "bool": "Bool",
}


def type_(self: Tensor, dtype: DType | str | None = None) -> Any:
    """Convert the elements, as `cast` does. PyTorch: type; NumPy: astype.

    Without a dtype, name that of the tensor as PyTorch does, such as "torch.FloatTensor".

    >>> from weft.tensor import Tensor
    >>> Tensor([1.5]).type("int32").tolist()
    [1]
    """
    if dtype is None:
        name = self.dtype.name
        return f"torch.{_OLD_NAMES.get(name, name)}Tensor"
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


def stride(self: Tensor, dim: int | None = None) -> Any:
    """Return how many elements lie between two along each axis, or along one.

    Memory has no layout that shows: the strides are those of rows one behind the other. PyTorch:
    stride.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2, 3], [4, 5, 6]]).stride(), Tensor([[1, 2, 3]]).stride(-1)
    ((3, 1), 1)
    """
    steps: list[Any] = [1]
    for size in reversed(self.shape[1:]):
        steps.append(steps[-1] * size)
    found = tuple(reversed(steps)) if self.ndim else ()
    return found if dim is None else found[dim]


def is_cuda(self: Tensor) -> bool:
    """Whether the memory is that of a GPU."""
    device: Any = self.device
    return isinstance(device, str) and device.type == "cuda"  # type: ignore[attr-defined]


def is_sparse(self: Tensor) -> bool:
    """False: all tensors are dense."""
    return False


def is_leaf_(self: Tensor) -> bool:
    """Whether the tensor was made, and not computed from one that requires a gradient."""
    return is_leaf(self) or self._wants is False


def view(self: Tensor, shape: Any, *args: Any) -> Tensor:
    """Return the elements in another shape, or their bits as another dtype. PyTorch: view.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, 2.0]).view(2, 1).shape, Tensor([1.0]).view("int32").tolist()
    ((2, 1), [1065353216])
    """
    if isinstance(shape, (str, DType)) and not args:
        return self.bitcast(shape)
    return self.reshape(shape, *args)
