"""Derivatives of functions at a point, with the arguments of torch.autograd.functional."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.tensor.autodiff import transforms
from weft.tensor.tensor import Tensor


def _all(function: Any, func: Callable[..., Any], inputs: Any) -> Any:
    """A transform of a function of one tensor, or of a tuple of them."""
    if isinstance(inputs, Tensor):
        return function(func)(inputs)
    given = tuple(inputs)
    return tuple(function(func, argnums=number)(*given) for number in range(len(given)))


def jacobian(func: Callable[..., Any], inputs: Any, create_graph: bool = False, **_: Any) -> Any:
    """All derivatives of the result by the inputs.

    >>> jacobian(lambda x: x * x, Tensor([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    return _all(transforms.jacobian, func, inputs)


def hessian(func: Callable[..., Any], inputs: Tensor, create_graph: bool = False, **_: Any) -> Any:
    """The second derivatives of a number by one tensor.

    >>> hessian(lambda x: (x * x).sum(), Tensor([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """
    return transforms.hessian(func)(inputs)


def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, **_: Any) -> tuple[Any, Any]:
    """The result, and v times the derivatives."""
    given = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    value, pull = transforms.vjp(func, *given)
    found = pull(value.ones_like() if v is None else v)
    listed = tuple(found) if isinstance(found, (tuple, list)) else (found,)
    return value, listed[0] if isinstance(inputs, Tensor) else listed


def jvp(func: Callable[..., Any], inputs: Any, v: Any = None, **_: Any) -> tuple[Any, Any]:
    """The result, and the derivatives times v."""
    given = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    along = [each.ones_like() for each in given] if v is None else v
    along = (along,) if isinstance(along, Tensor) else tuple(along)
    value, change = transforms.jvp(func, given, along)
    return value, change
