"""`Parameter` and `Buffer`: tensors made to be trained, and tensors made to be state."""

from __future__ import annotations

from typing import Any
from weakref import ref

from weft.support.errors import DTypeError
from weft.tensor.tensor import Tensor


def is_parameter(tensor: Tensor) -> bool:
    """Whether a tensor was made to be trained: it requires a gradient."""
    return tensor._wants is True


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


class Buffer:
    """A tensor that is state and not trained: a module that is given it registers it.

    >>> Buffer(Tensor([1.0, 2.0])).requires_grad
    False
    """

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        made = Tensor([]) if data is None else data
        made = made.detach().clone() if isinstance(made, Tensor) else Tensor(made)
        made.requires_grad = False
        number = id(made)
        _BUFFERS[number] = ref(made, lambda _: _BUFFERS.pop(number)), persistent
        return made


# Those that were made as buffers, by number: `==` of tensors compares elements.
_BUFFERS: dict[int, tuple[Any, bool]] = {}


def try_persistent(tensor: Tensor) -> bool | None:
    """Whether a buffer is saved; None where a tensor was not made as one."""
    found = _BUFFERS.get(id(tensor))
    return None if found is None else found[1]
