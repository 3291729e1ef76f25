"""Scopes in which values are constants to gradients: `no_grad` and its kin.

Nothing is recorded in Weft, so there is nothing to save; what a scope changes is meaning. A value
computed in it is detached, and a tensor that requires a gradient may be changed in place.
"""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import Final


class GradMode:
    """Whether values are detached now; one switch for all threads."""

    __slots__ = ("is_off",)

    def __init__(self) -> None:
        self.is_off = False


grad_mode: Final = GradMode()


class set_grad_enabled(ContextDecorator):  # noqa: N801 -- the public name
    """Let gradients flow, or not, in a scope or while a function runs. PyTorch has it too.

    >>> from weft.tensor import Tensor
    >>> x = Tensor([2.0], requires_grad=True)
    >>> with set_grad_enabled(False):
    ...     y = x * x
    >>> (x * y).sum().gradient(x)[0].tolist()
    [4.0]
    """

    def __init__(self, mode: bool = True) -> None:
        self.is_off = not mode
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(grad_mode.is_off)
        grad_mode.is_off = self.is_off

    def __exit__(self, *failure: object) -> None:
        grad_mode.is_off = self._before.pop()


class no_grad(set_grad_enabled):  # noqa: N801 -- the public name
    """Compute constants: no gradient flows through what is computed here. PyTorch has it too.

    >>> from weft.tensor import Tensor
    >>> w = Tensor([1.0], requires_grad=True)
    >>> with no_grad():
    ...     w -= 0.5
    >>> w.tolist(), w.requires_grad
    ([0.5], True)
    """

    def __init__(self, function: object = None) -> None:
        super().__init__(False)

    def __new__(cls, function: object = None) -> object:  # type: ignore[misc]
        made = super().__new__(cls)
        if callable(function):  # @no_grad without parentheses
            made.__init__()  # type: ignore[misc]
            return made(function)
        return made


class enable_grad(set_grad_enabled):  # noqa: N801 -- the public name
    """Let gradients flow inside of a `no_grad`. PyTorch has it too."""

    def __init__(self) -> None:
        super().__init__(True)


class inference_mode(set_grad_enabled):  # noqa: N801 -- the public name
    """The same as `no_grad`. PyTorch has it too."""

    def __init__(self, mode: bool = True) -> None:
        super().__init__(not mode)


def is_grad_enabled() -> bool:
    """Return whether gradients flow. PyTorch: is_grad_enabled.

    >>> is_grad_enabled()
    True
    """
    return not grad_mode.is_off
