"""`Parameter` and `Buffer`: tensors made to be trained, and tensors made to be state."""

from __future__ import annotations

from typing import Any

from weft.support.errors import DTypeError
from weft.tensor.tensor import Tensor


def is_parameter(tensor: Tensor) -> bool:
    """Whether a tensor was made to be trained: it requires a gradient."""
    return tensor.requires_grad is True


class _ParameterType(type):
    """isinstance(x, Parameter) asks whether a tensor is one; there is no class of such tensors."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and is_parameter(instance)


class Parameter(metaclass=_ParameterType):
    """A tensor that is trained: `Parameter(data)` is a tensor that requires a gradient.

    >>> weight = Parameter(Tensor([1.0, 2.0]))
    >>> weight.requires_grad, isinstance(weight, Parameter)
    (True, True)
    """

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        made = Tensor([]) if data is None else data
        made = made.detach().clone() if isinstance(made, Tensor) else Tensor(made)
        if requires_grad and not made.is_floating_point():
            raise DTypeError(
                f"Parameter: a tensor of {made.dtype.name} has no gradient",
                rule="only floats have gradients",
                fix="make it a float, or pass requires_grad=False",
            )
        return made.requires_grad_(requires_grad)
