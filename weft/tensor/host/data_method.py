"""`x.data()`, which gives the bytes, and what to write instead of PyTorch's attribute `x.data`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weft.support.errors import UnknownAttribute
from weft.tensor.host.convert import data

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

_LAW = "x.data() is a memoryview of the elements; a tensor itself is read and written"


class BoundData:
    """The method `data` of one tensor: it can be called, and everything else is explained."""

    __slots__ = ("_tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    def __call__(self) -> memoryview:
        return data(self._tensor)

    # Hidden from the type checker, which would accept every name if it saw this.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise UnknownAttribute(
                f"x.data is a method, so it has no attribute {name!r}",
                rule=_LAW,
                fix=f"write x.detach().{name}, or x.{name} where no gradient flows",
            )


def _refusing(symbol: str) -> Callable[..., Any]:
    def operator(self: BoundData, *others: Any) -> Any:
        raise UnknownAttribute(
            f"x.data is a method, so it has no {symbol}",
            rule=_LAW,
            fix=f"write x.assign(x {symbol} ...), or x.detach() {symbol} ... for the value",
        )

    return operator


for _name, _symbol in (("add", "+"), ("sub", "-"), ("mul", "*"), ("truediv", "/")):
    for _form in ("", "r", "i"):
        setattr(BoundData, f"__{_form}{_name}__", _refusing(_symbol))


class DataMethod:
    """The descriptor of `data`; as other methods do, it has a function and can be called."""

    __func__ = staticmethod(data)

    def __call__(self, tensor: Tensor) -> memoryview:
        return data(tensor)

    def __get__(self, tensor: Tensor | None, owner: type) -> Callable[..., memoryview]:
        return data if tensor is None else BoundData(tensor)

    def __set__(self, tensor: Tensor, value: Any) -> None:
        raise UnknownAttribute("x.data cannot be set", rule=_LAW, fix="write x.assign(value)")
