"""`x.data`: PyTorch's attribute, a tensor without gradient, and tinygrad's method, its bytes.

`x.data` is a view as `x.detach()` gives it, so writes to it are writes to `x`; and it can be
called: `x.data()` is a memoryview of the elements.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from weft.support.errors import ArgumentTypeError
from weft.tensor.host.values import data

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


@functools.cache
def _class_of_views(tensor_class: type[Tensor]) -> type[Tensor]:
    """The class of tensors that can be called; what is computed from them is a plain tensor."""

    class Data(tensor_class):  # type: ignore[valid-type, misc]
        __slots__ = ()

        def __call__(self) -> memoryview:
            return data(self)

        @property  # type: ignore[misc]
        def __class__(self) -> type:
            """A tensor, for whoever asks: results are made of this class."""
            return tensor_class

    return Data


class DataMethod:
    """The descriptor of `data`; as other methods do, it has a function and can be called."""

    __func__ = staticmethod(data)

    def __call__(self, tensor: Tensor) -> memoryview:
        return data(tensor)

    def __get__(self, tensor: Tensor | None, owner: type) -> Any:
        if tensor is None:
            return data
        view = tensor.detach()
        made: Any = object.__new__(_class_of_views(view.__class__))
        made._storage, made._steps = view._storage, view._steps
        made._seen = made._grad = made._pair = None
        made._wants = view._wants
        return made

    def __set__(self, tensor: Tensor, value: Any) -> None:
        """Take another value; the gradient and whether one is wanted stay."""
        if not hasattr(value, "detach"):
            raise ArgumentTypeError(
                f"x.data is set to a {type(value).__name__}", rule="it is set to a tensor"
            )
        new = value.detach()
        if new.shape == tensor.shape and new.dtype is tensor.dtype:
            tensor.assign(new.to(tensor.device))
            return
        wanted, tensor.requires_grad = tensor._wants, False
        made = new._same()
        tensor._storage, tensor._steps, tensor._seen = made._storage, made._steps, None
        tensor.requires_grad = wanted
