"""`@function`: a Python function becomes one CALL in the graph.

The function is traced with its tensor arguments as parameters. Whatever else it reads (weights,
the random state, values of an enclosing function) becomes a further argument, so the body mentions
nothing but its parameters: a layer that is used many times, with other weights each time, is the
same body and is scheduled and compiled once. Writes to tensors inside become results that are
written outside. A call runs by itself: nothing is fused across its border.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, overload

from weft.engine.devices import default_device
from weft.ir.build import call_results, one_or_tuple
from weft.ir.dtypes import dtypes
from weft.ir.ops import MOVEMENT, Op
from weft.ir.uop import UOp, make
from weft.ir.walk import substitute, topological
from weft.support.errors import ArgumentTypeError, NotSupported
from weft.tensor.autodiff.custom_gradient import Gradient, with_gradient
from weft.tensor.storage import Storage
from weft.tensor.tensor import Tensor
from weft.tensor.trace.pure import Outside
from weft.tensor.trace.state import tracing
from weft.tensor.trace.tracing import Traced, close_over
from weft.tensor.trees import map_tensors

Function = TypeVar("Function", bound=Callable[..., Any])


@overload
def function(wrapped: Function) -> Function: ...


@overload
def function(
    *,
    gradient: Gradient | None = None,
    allow_implicit: bool = True,
    precompile: bool = False,
    precompile_backward: bool = False,
    grad_fxn: Any = None,
) -> Callable[[Function], Function]: ...


def function(
    wrapped: Any = None,
    *,
    gradient: Gradient | None = None,
    allow_implicit: bool = True,
    precompile: bool = False,
    precompile_backward: bool = False,
    grad_fxn: Any = None,
) -> Any:
    """Make a function of tensors a call that is scheduled and compiled once.

    >>> from weft.tensor.tensor import Tensor
    >>> @function
    ... def double(x):
    ...     return x * 2
    >>> double(double(Tensor([1, 2]))).tolist()
    [4, 8]

    `gradient(inputs, outputs, gradients)` replaces the derivative of the function. It receives the
    tensor arguments as a tuple, and the results and their gradients, each as a tuple if there are
    several; it returns a gradient for each input, or None. Tensors that the function reads beside
    its arguments then have no gradient from it.

    `allow_implicit`, `precompile` and `precompile_backward` are accepted for programs of tinygrad:
    tensors beside the arguments may be read, and a body is compiled once in any case.

    >>> @function(gradient=lambda inputs, outputs, gradients: gradients.clamp(-1, 1))
    ... def clip_gradient(x):
    ...     return x * 1
    >>> x = Tensor([1.0, 2.0])
    >>> (clip_gradient(x) * Tensor([5.0, 0.5])).sum().gradient(x)[0].tolist()
    [1.0, 0.5]
    """
    if grad_fxn is not None:
        raise NotSupported(
            "function: grad_fxn is a gradient over nodes",
            rule="a gradient is a function of tensors here",
            fix="write gradient=lambda inputs, outputs, gradients: ...",
        )
    if wrapped is None:
        return lambda later: _called(later, gradient)
    return _called(wrapped, gradient)


def _called(wrapped: Function, gradient: Gradient | None) -> Function:
    @functools.wraps(wrapped)
    def called(*args: Any, **kwargs: Any) -> Any:
        traced = Traced()
        outside = Outside()
        devices: list[str] = []
        inner_args, inner_kwargs = map_tensors(
            (args, kwargs), lambda t: _enter(t, traced, devices)
        )
        tracing.depth += 1  # a jitted function inside is part of this one
        try:
            results = wrapped(*inner_args, **inner_kwargs)
        except BaseException:  # what it wrote before stays written
            outside.settle(traced.stands_for)
            raise
        finally:
            tracing.depth -= 1
        values: list[UOp] = []
        map_tensors(results, lambda t: _leave(t, values, devices))
        written = writes_of(traced, outside)
        outputs = [*values, *(value for _, _, value in written)]
        done = _call(outputs, traced)
        device = devices[0] if devices else default_device()
        made = done[: len(values)]
        if gradient is not None:
            made = with_gradient(made, traced.arguments, gradient, device)
        remaining = iter(made)
        result = map_tensors(results, lambda t: Tensor._value(next(remaining), device))
        for (storage, node, _), value in zip(written, done[len(values) :], strict=True):
            storage.uop = substitute(storage.uop, {node: value})
        return result

    return called  # type: ignore[return-value]


def _enter(tensor: Tensor, traced: Traced, devices: list[str]) -> Tensor:
    """The placeholder of an argument, inside the function."""
    devices.append(tensor.device)
    made = Tensor._value(traced.enter(tensor.uop), tensor.device)
    made.requires_grad = tensor._wants
    return made


def _leave(tensor: Tensor, values: list[UOp], devices: list[str]) -> Tensor:
    values.append(tensor.uop)
    devices.append(tensor.device)
    return tensor


def writes_of(traced: Traced, outside: Outside) -> list[tuple[Storage, UOp, UOp]]:
    """What is written that only exists inside, to storages from outside.

    Each row is the storage, the node of its version that a result of the call replaces, and the
    value of that result. Where the address itself depends on the inside, it is all of the memory.
    """
    inside = set(traced.parameters)
    written: list[tuple[Storage, UOp, UOp]] = []
    for storage in outside.written(inside):
        if storage.memory is None:
            written.append((storage, storage.uop, storage.uop))
            continue
        nodes = topological(storage.uop)
        stores = [
            node
            for node in nodes
            if node.op == Op.STORE and inside.intersection(topological(node))
        ]
        if any(inside.intersection(topological(address)) for address in map(_address, stores)):
            value = storage.uop
            storage.uop = make(
                Op.AFTER,
                value.dtype,
                (storage.memory, make(Op.STORE, dtypes.void, (storage.memory, value))),
            )
            written.append((storage, value, value))
        else:
            written += [(storage, node.src[1], node.src[1]) for node in stores]
    return written


def _address(store: UOp) -> UOp:
    """Where a store writes, as the indices of its address, without the version it writes to."""
    address = store.src[0]
    names: tuple[UOp, ...] = ()
    while address.op in MOVEMENT or address.op == Op.INDEX:
        names += address.src[1:]
        address = address.src[0]
    return make(Op.TUPLE, dtypes.void, names)


def _call(outputs: list[UOp], traced: Traced) -> list[UOp]:
    """The results of one CALL whose body computes the outputs."""
    if not outputs:
        raise ArgumentTypeError(
            "function: nothing comes out of it",
            rule="a @function returns tensors, or tuples, lists and dicts of tensors",
        )
    bodies, arguments = close_over(outputs, traced)
    return call_results(one_or_tuple(bodies), *arguments)
