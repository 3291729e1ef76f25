"""`Tensor.train()`: the scope in which dropout and batch statistics behave as in training."""

from __future__ import annotations

from contextlib import ContextDecorator


class train(ContextDecorator):  # noqa: N801 -- called as Tensor.train()
    """Set `Tensor.training` in a scope, or while a function runs, and put it back afterwards.

    `Tensor.training = True` sets it for good. All threads see it.

    >>> from weft.tensor import Tensor
    >>> with Tensor.train():
    ...     Tensor.training
    True
    >>> @Tensor.train()
    ... def step():
    ...     return Tensor.training
    >>> step(), Tensor.training
    (True, False)
    """

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode
        self._before: list[bool] = []

    def __enter__(self) -> None:
        from weft.tensor.tensor import Tensor

        self._before.append(Tensor.training)
        Tensor.training = self.mode

    def __exit__(self, *failure: object) -> None:
        from weft.tensor.tensor import Tensor

        Tensor.training = self._before.pop()
