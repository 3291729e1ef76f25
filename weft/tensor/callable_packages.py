"""`weft.tensor(...)` and `weft.gradient(...)`: packages that answer a call as PyTorch's functions.

PyTorch has functions of these names, and Weft has packages. Both stay: a module may have a class
whose objects can be called.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import weft.gradient  # noqa: F401 -- the package must be there to be changed
from weft.tensor.tensor import Tensor


class TensorPackage(ModuleType):
    """The package `weft.tensor`, whose call makes a tensor."""

    def __call__(
        self,
        data: Any,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
    ) -> Tensor:
        """Make a tensor of data. PyTorch: tensor."""
        made = Tensor(data, device=device, dtype=dtype)
        return made.requires_grad_(True) if requires_grad else made


class GradientPackage(ModuleType):
    """The package `weft.gradient`, whose call computes finite differences."""

    def __call__(self, input: Tensor, **options: Any) -> list[Tensor]:
        """Compute the slopes along axes. PyTorch: gradient."""
        return input.gradient(**options)


sys.modules["weft.tensor"].__class__ = TensorPackage
sys.modules["weft.gradient"].__class__ = GradientPackage
