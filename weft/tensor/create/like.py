"""New tensors with the dtype and device of another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


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
