"""Methods that programs written for PyTorch expect, made of others that are defined elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.ir.dtypes import DType
from weft.ir.shapes import same_shape
from weft.support.errors import ShapeError
from weft.tensor.checks import require_one_device
from weft.tensor.linalg.checks import require_matrix

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


def _own(self: Tensor, options: dict[str, Any]) -> dict[str, Any]:
    """The dtype and device of a tensor, where nothing else is said."""
    given = {name: value for name, value in options.items() if value is not None}
    return {"dtype": self.dtype, "device": self.device, **given}


def new_zeros(self: Tensor, *size: Any, **options: Any) -> Tensor:
    """Return zeros of a shape, with this dtype and device. PyTorch: new_zeros.

    >>> from weft.tensor import Tensor
    >>> Tensor([1]).new_zeros(2, 2).tolist()
    [[0, 0], [0, 0]]
    """
    return self.__class__.zeros(*size, **_own(self, options))


def new_ones(self: Tensor, *size: Any, **options: Any) -> Tensor:
    """Return ones of a shape, with this dtype and device. PyTorch: new_ones.

    >>> from weft.tensor import Tensor
    >>> Tensor([1]).new_ones((3,)).tolist()
    [1, 1, 1]
    """
    return self.__class__.ones(*size, **_own(self, options))


def new_full(self: Tensor, size: Any, fill_value: Any, **options: Any) -> Tensor:
    """Return one value in a shape, with this dtype and device. PyTorch: new_full.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0]).new_full((2,), 7).tolist()
    [7.0, 7.0]
    """
    return self.__class__.full(size, fill_value, **_own(self, options))


def new_empty(self: Tensor, *size: Any, **options: Any) -> Tensor:
    """Return memory of a shape, with this dtype and device. PyTorch: new_empty.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0]).new_empty(2, 3).shape
    (2, 3)
    """
    return self.__class__.empty(*size, **_own(self, options))


def new_tensor(self: Tensor, data: Any, **options: Any) -> Tensor:
    """Return a tensor of data, with this dtype and device. PyTorch: new_tensor.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0]).new_tensor([1, 2]).tolist()
    [1.0, 2.0]
    """
    return self.__class__(data, **_own(self, options))


def is_contiguous(self: Tensor) -> bool:
    """Return True: how elements lie in memory does not show in a tensor. PyTorch: is_contiguous.

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


def formatted(self: Tensor, spec: str) -> str:
    """A tensor of one element in a format string is that number; others take no format.

    >>> from weft.tensor import Tensor
    >>> f"{Tensor(1.5):.2f} {Tensor(1.5)!r}"
    '1.50 <Tensor () float32 CPU lazy>'
    """
    return format(self.item(), spec) if spec else str(self)


def mm(self: Tensor, mat2: Tensor) -> Tensor:
    """Multiply two matrices: (n, k) @ (k, m) is (n, m). PyTorch: mm; NumPy: matmul.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2]]).mm(Tensor([[3], [4]])).tolist()
    [[11]]
    """
    for each in (self, mat2):
        require_matrix("mm", each)
        if each.ndim != 2:
            raise ShapeError(
                f"mm: a tensor with {each.ndim} axes is no matrix",
                facts=[("shape", each.shape)],
                law="mm takes (n, k) and (k, m)",
                fix="write a @ b for batches of matrices",
            )
    return self.dot(mat2)


def logdet(self: Tensor) -> Tensor:
    """Return the logarithm of the determinant of (…, n, n): -inf for 0, NaN below 0.

    PyTorch: logdet.

    >>> from weft.tensor import Tensor
    >>> Tensor([[2.0, 0.0], [0.0, 0.5]]).logdet().item()
    0.0
    """
    sign, size = self.slogdet()
    return (sign < 0).where(float("nan"), size)
