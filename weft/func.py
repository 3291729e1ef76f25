"""Functions of functions, with the names of torch.func."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from weft.nn.module_walk import inside
from weft.support.module_names import missing_name
from weft.tensor.autodiff.transforms import grad, hessian, jvp, value_and_grad, vjp, vmap
from weft.tensor.autodiff.transforms import jacobian as jacfwd
from weft.tensor.autodiff.transforms import jacobian as jacrev

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "vjp",
    "vmap",
]


def grad_and_value(func: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
    """A function that returns the gradient and the value of another, in this order.

    >>> from weft.tensor import Tensor
    >>> [each.tolist() for each in grad_and_value(lambda x: (x * x).sum())(Tensor([3.0]))]
    [[6.0], 9.0]
    """
    both = value_and_grad(func, argnums)

    def called(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        value, gradient = both(*args, **kwargs)
        return gradient, value

    return called


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Mapping[str, Any] | tuple[Mapping[str, Any], ...],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    **_: Any,
) -> Any:
    """Call a module with other tensors instead of some of its own.

    >>> from weft import Tensor, nn
    >>> functional_call(nn.Linear(2, 1, bias=False), {"weight": Tensor([[1.0, 2.0]])},
    ...     (Tensor([3.0, 4.0]),)).tolist()
    [11.0]
    """
    dicts = parameter_and_buffer_dicts
    named: dict[str, Any] = {}
    for each in dicts if isinstance(dicts, tuple) else (dicts,):
        named |= each
    before = []
    try:
        for name, value in named.items():
            path, last = name.rpartition(".")[::2]
            holder = inside(module, path) if path else module
            before.append((holder, last, inside(holder, last)))
            holder.__dict__[last] = value
        given = () if args is None else args if isinstance(args, tuple) else (args,)
        return module(*given, **(kwargs or {}))
    finally:
        for holder, last, value in reversed(before):
            holder.__dict__[last] = value


def __getattr__(name: str) -> object:
    return missing_name(__name__)(name)
