"""Functions that are handed an array, a list or nothing where a tensor is wanted say so."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from weft.support.errors import ArgumentTypeError
from weft.tensor.checks import kind_of
from weft.tensor.tensor import Tensor


def is_no_input(value: Any) -> bool:
    """Whether a value is what tensors are made of, or nothing: functions take tensors."""
    if isinstance(value, (list, tuple)):
        return not any(isinstance(each, Tensor) for each in value) and bool(value)
    is_plain = value is None or isinstance(value, (str, bytes, int, float))
    return is_plain or (hasattr(type(value), "__array__") and not isinstance(value, Tensor))


def refusal(name: str, value: Any) -> ArgumentTypeError:
    return ArgumentTypeError(
        f"{name}: expected a Tensor, got {kind_of(value)}",
        rule="layers and functions compute with tensors",
        fix="" if value is None else "make a tensor of it: Tensor(x)",
    )


def require_tensors(names: dict[str, Any], listed: Sequence[str]) -> None:
    """Let the listed functions of a module refuse a first argument that is not a tensor."""
    for name in listed:
        names[name] = _checked(names[name])


def _checked(function: Any) -> Any:
    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if args and args[0].__class__ is not Tensor and is_no_input(args[0]):
            raise refusal(function.__name__, args[0])
        return function(*args, **kwargs)

    return checked
