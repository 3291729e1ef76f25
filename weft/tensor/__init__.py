"""The user's object, one file per family of methods."""

from weft.tensor import callable_packages
from weft.tensor.tensor import Tensor

__all__ = ["Tensor", "callable_packages"]
