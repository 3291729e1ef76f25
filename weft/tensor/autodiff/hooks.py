"""Hooks on gradients: functions that see, and may change, what `backward` gives to a leaf."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import ref

from weft.support.errors import NotSupported
from weft.tensor.autodiff.leaves import is_leaf

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

Hook = Callable[[Any], Any]
# By the number of a tensor, which lives as long as it is here: `==` of tensors compares elements.
_HOOKS: dict[int, tuple[Any, dict[int, Hook]]] = {}
_NUMBERS = count()


class HookHandle:
    """What `register_hook` returns: `remove` takes the hook away."""

    def __init__(self, hooks: dict[int, Hook], number: int) -> None:
        self.hooks, self.number = hooks, number

    def remove(self) -> None:
        """Take the hook away."""
        self.hooks.pop(self.number, None)


def register_hook(self: Tensor, hook: Hook) -> HookHandle:
    """Call a function with the gradient of this leaf in each `backward`; it may return another.

    PyTorch: register_hook.

    >>> from weft.tensor import Tensor
    >>> x = Tensor([1.0, 2.0], requires_grad=True)
    >>> handle = x.register_hook(lambda grad: grad * 10)
    >>> _ = (x * 3).sum().backward()
    >>> x.grad.tolist()
    [30.0, 30.0]
    """
    if not is_leaf(self) or self.requires_grad is not True:
        raise NotSupported(
            "register_hook: the tensor was computed, or does not require a gradient",
            rule="gradients are graphs, and hooks see those that backward() gives to leaves",
            fix="write @weft.function(gradient=...) around the value",
        )
    number = id(self)
    hooks = _HOOKS.setdefault(number, (ref(self, lambda _: _HOOKS.pop(number, None)), {}))[1]
    number = next(_NUMBERS)
    hooks[number] = hook
    return HookHandle(hooks, number)


def after_hooks(leaf: Tensor, gradient: Tensor) -> Tensor:
    """The gradient, as the hooks of a leaf leave it."""
    found = _HOOKS.get(id(leaf)) if _HOOKS else None
    if found is None:
        return gradient
    for hook in list(found[1].values()):
        changed = hook(gradient)
        gradient = gradient if changed is None else changed
    return gradient
