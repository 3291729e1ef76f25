"""Hooks on gradients: functions that see, and may change, what `backward` gives to a tensor.

Those of a leaf see what is added to its `.grad`. A value that was computed goes on as a node that
is the value, with a number of its own; the gradients that lead through it pass its hooks.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary, ref

from weft.ir.dtypes import dtypes
from weft.ir.uop import UOp, const, make
from weft.support.errors import NotSupported
from weft.tensor.autodiff.leaves import is_leaf
from weft.tensor.storage import Storage

if TYPE_CHECKING:
    from weft.gradient.reverse import Watch
    from weft.tensor.tensor import Tensor

Hook = Callable[[Any], Any]
# By the number of a tensor, which lives as long as it is here: `==` of tensors compares elements.
_HOOKS: dict[int, tuple[Any, dict[int, Hook]]] = {}
_NUMBERS = count()
# Those of computed values, by the number in their node; they live as long as a graph has it.
_MARKS: Final[WeakKeyDictionary[UOp, dict[int, Hook]]] = WeakKeyDictionary()
_FIRST_MARK: Final = 1 << 62
# The computed tensors that `backward` gives a gradient to.
_RETAINING: Final[dict[int, ref[Tensor]]] = {}


class HookHandle:
    """What `register_hook` returns: `remove` takes the hook away."""

    def __init__(self, hooks: dict[int, Hook], number: int) -> None:
        self.hooks, self.number = hooks, number

    def remove(self) -> None:
        """Take the hook away."""
        self.hooks.pop(self.number, None)


def register_hook(self: Tensor, hook: Hook) -> HookHandle:
    """Call a function with the gradient of this tensor in each `backward`; it may return another.

    PyTorch: register_hook.

    >>> from weft.tensor import Tensor
    >>> x = Tensor([1.0, 2.0], requires_grad=True)
    >>> handle = x.register_hook(lambda grad: grad * 10)
    >>> _ = (x * 3).sum().backward()
    >>> x.grad.tolist()
    [30.0, 30.0]
    """
    if self._wants is False or not self.dtype.is_inexact:
        raise NotSupported(
            "register_hook: the tensor does not require a gradient",
            rule="hooks see gradients, and this tensor gets none",
            fix="write x.requires_grad_() first",
        )
    if is_leaf(self) and self._wants:
        key = id(self)
        hooks = _HOOKS.setdefault(key, (ref(self, lambda _: _HOOKS.pop(key, None)), {}))[1]
    else:
        hooks = _MARKS[_mark(self)]
    number = next(_NUMBERS)
    hooks[number] = hook
    return HookHandle(hooks, number)


def retain_grad(self: Tensor) -> None:
    """Let `backward` give this computed tensor its `.grad` too. PyTorch: retain_grad.

    >>> from weft.tensor import Tensor
    >>> x = Tensor([3.0], requires_grad=True)
    >>> y = x * 2
    >>> y.retain_grad()
    >>> _ = (y * y).sum().backward()
    >>> y.grad.tolist()
    [12.0]
    """
    if (is_leaf(self) and self._wants) or retains_grad(self):
        return
    key, itself = id(self), ref(self)

    def keep(gradient: Tensor) -> None:
        tensor = itself()
        if tensor is not None:
            before = tensor._grad
            tensor._grad = gradient if before is None else before + gradient

    register_hook(self, keep)
    _RETAINING[key] = ref(self, lambda _: _RETAINING.pop(key, None) and None)


def retains_grad(self: Tensor) -> bool:
    """Whether `backward` gives this tensor a gradient although it was computed."""
    return id(self) in _RETAINING


def _mark(self: Tensor) -> UOp:
    """Let the tensor go on as a node of the same value with a number, and return the number."""
    from weft.tensor.autodiff.custom_gradient import with_gradient

    node = self.uop
    found = _mark_of(node)
    if found is not None:
        return found
    mark = const(dtypes.int64, _FIRST_MARK + next(_NUMBERS))
    _MARKS[mark] = {}
    (plain,) = with_gradient([node], [node], _same, self.device)
    marked = make(plain.op, plain.dtype, (*plain.src, mark), plain.arg)
    self._storage, self._steps, self._seen = Storage(marked, self.device), (), None
    return mark


def _same(inputs: Any, value: Any, gradient: Any) -> Any:
    return gradient


def _mark_of(node: UOp) -> UOp | None:
    last = node.src[-1] if node.src else None
    return last if last is not None and last in _MARKS else None


def watch_of(like: Tensor, fold: Callable[[UOp], UOp]) -> Watch | None:
    """What calls the hooks of computed values in a backward pass; None where there are none."""
    if not _MARKS:
        return None

    def watch(node: UOp, gradient: UOp) -> UOp:
        mark = _mark_of(node)
        if mark is None or not _MARKS[mark]:
            return gradient
        seen = like._value(fold(gradient), like.device)
        return _passed(seen, _MARKS[mark]).uop

    return watch


def _passed(gradient: Tensor, hooks: dict[int, Hook]) -> Tensor:
    """The gradient as hooks leave it."""
    for hook in list(hooks.values()):
        changed = hook(gradient)
        gradient = gradient if changed is None else changed
    return gradient


def after_hooks(leaf: Tensor, gradient: Tensor) -> Tensor:
    """The gradient, as the hooks of a leaf leave it."""
    found = _HOOKS.get(id(leaf)) if _HOOKS else None
    if found is None:
        return gradient
    return _passed(gradient, found[1])
