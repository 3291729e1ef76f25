"""Names that older programs use."""

from __future__ import annotations

from typing import Any

from weft.tensor.tensor import Tensor


def Variable(data: Any, requires_grad: bool = False, volatile: Any = None) -> Tensor:  # noqa: N802
    """A tensor, as `Tensor` makes it: variables are tensors.

    >>> Variable(Tensor([1.0]), requires_grad=True).requires_grad
    True
    """
    made = data if isinstance(data, Tensor) else Tensor(data)
    return made.requires_grad_(True) if requires_grad else made


class set_multithreading_enabled:  # noqa: N801 -- PyTorch's name
    """Accept a switch: gradients are graphs, and nothing walks them in threads."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass
