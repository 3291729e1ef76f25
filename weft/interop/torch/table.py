"""The table of ATen operators: a row for each overload that Weft computes.

A function takes the `Call` of its node, then what the operator takes, with tensors of Weft
instead of PyTorch's and dtypes instead of its dtypes. What concerns the memory of PyTorch
(device, layout, memory format) is left out. It returns its result, or a tuple of them; the caller
casts each to the dtype that PyTorch gave to the node.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, NamedTuple

from weft.ir.dtypes import DType, dtypes
from weft.tensor.tensor import Tensor

Function = Callable[..., Any]


class Call(NamedTuple):
    """What PyTorch knows of a node."""

    name: str
    dtype: DType | None  # of the first result
    common: DType | None  # what the operands are promoted to
    strides: tuple[tuple[int, ...] | None, ...] = ()  # of the tensors among the arguments
    shapes: tuple[tuple[int, ...] | None, ...] = ()  # of the results

    def promoted(self, *operands: Any) -> list[Any]:
        """The operands in the dtype that the operator computes in; numbers stay weak."""
        return [
            each.cast(self.common)
            if isinstance(each, Tensor) and self.common is not None
            else each
            for each in operands
        ]

    @property
    def result(self) -> DType:
        return dtypes.default_float if self.dtype is None else self.dtype


_ROWS: dict[str, Function] = {}


def aten(*names: str) -> Callable[[Function], Function]:
    """Enter a function in the table under these names, as in "add.Tensor"."""

    def entered(function: Function) -> Function:
        for name in names:
            _ROWS[name if "." in name else f"{name}.default"] = function
        return function

    return entered


@cache
def operators() -> dict[str, Function]:
    """All rows, by the name of the overload without its namespace."""
    folder = import_module("weft.interop.torch.operators")
    for each in iter_modules(folder.__path__):
        import_module(f"{folder.__name__}.{each.name}")
    return _ROWS
