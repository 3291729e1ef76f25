"""`@function`: a Python function becomes one CALL in the graph.

The function is traced with its tensor arguments as parameters. Whatever else it reads (weights,
the random state, values of an enclosing function) becomes a further argument, so the body mentions
nothing but its parameters: a layer that is used many times, with other weights each time, is the
same body and is scheduled and compiled once. Writes to tensors inside become results that are
written outside. A call runs by itself: nothing is fused across its border.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

from weft.ir.build import param
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp, make
from weft.ir.walk import substitute, topological
from weft.support.errors import ArgumentTypeError
from weft.tensor.storage import Storage, lazy_storages
from weft.tensor.tensor import Tensor

Function = TypeVar("Function", bound=Callable[..., Any])

# While a function is traced its parameters have numbers that nothing else has.
_traced: Final = itertools.count(1 << 40)
_MEMORY: Final = frozenset((Op.BUFFER, Op.AFTER, Op.PARAM))


class _Traced(NamedTuple):
    """A function's arguments as nodes, and what stands for them inside."""

    arguments: list[UOp]
    parameters: list[UOp]


def function(wrapped: Function) -> Function:
    """Make a function of tensors a call that is scheduled and compiled once.

    >>> from weft.tensor.tensor import Tensor
    >>> @function
    ... def double(x):
    ...     return x * 2
    >>> double(double(Tensor([1, 2]))).tolist()
    [4, 8]
    """

    @functools.wraps(wrapped)
    def called(*args: Any, **kwargs: Any) -> Any:
        found = _Traced([], [])
        devices: list[str] = []
        inner_args, inner_kwargs = _map((args, kwargs), lambda t: _enter(t, found, devices))
        results = wrapped(*inner_args, **inner_kwargs)
        values: list[UOp] = []
        _map(results, lambda t: _leave(t, values, devices))
        written = _writes_of(found)
        outputs = [*values, *(store.src[1] for _, store in written)]
        made = iter(_call(outputs, found))
        device = devices[0] if devices else None
        answer = _map(results, lambda t: Tensor(next(made), device=device))
        for (storage, store), value in zip(written, made, strict=True):
            storage.uop = substitute(storage.uop, {store.src[1]: value})
        return answer

    return called  # type: ignore[return-value]


def _map(tree: Any, change: Callable[[Tensor], Any]) -> Any:
    """The same tuples, lists and dicts with every tensor changed."""
    if isinstance(tree, Tensor):
        return change(tree)
    if isinstance(tree, (tuple, list)):
        return type(tree)(_map(part, change) for part in tree)
    if isinstance(tree, dict):
        return {key: _map(part, change) for key, part in tree.items()}
    return tree


def _enter(tensor: Tensor, found: _Traced, devices: list[str]) -> Tensor:
    """A tensor that stands for an argument inside the function."""
    node = tensor.uop
    stand_in = param(next(_traced), node.dtype, shape_of(node))
    found.arguments.append(node)
    found.parameters.append(stand_in)
    devices.append(tensor.device)
    made = Tensor(stand_in, device=tensor.device)
    made.requires_grad = tensor.requires_grad
    return made


def _leave(tensor: Tensor, values: list[UOp], devices: list[str]) -> Tensor:
    values.append(tensor.uop)
    devices.append(tensor.device)
    return tensor


def _writes_of(found: _Traced) -> list[tuple[Storage, UOp]]:
    """The stores of values that only exist inside, and the storages that they are written to."""
    inside = set(found.parameters)
    written: list[tuple[Storage, UOp]] = []
    for storage in lazy_storages():
        nodes = topological(storage.uop)
        if storage.uop.op == Op.AFTER and inside.intersection(nodes):
            written += [
                (storage, node)
                for node in nodes
                if node.op == Op.STORE and inside.intersection(topological(node.src[1]))
            ]
    return written


def _call(outputs: list[UOp], found: _Traced) -> list[UOp]:
    """The results of one CALL whose body computes the outputs."""
    if not outputs:
        raise ArgumentTypeError(
            "function: nothing comes out of it",
            law="a @function returns tensors, or tuples, lists and dicts of tensors",
        )
    renamed: dict[UOp, UOp] = {}
    arguments = list(found.arguments)
    for slot, stand_in in enumerate(found.parameters):
        renamed[stand_in] = param(slot, stand_in.dtype, shape_of(stand_in))
    for node in topological(*outputs, enter=lambda node: node.op not in _MEMORY):
        if node.op in _MEMORY and node not in renamed:
            renamed[node] = param(len(arguments), node.dtype, shape_of(node))
            arguments.append(node)
    bodies = [substitute(output, renamed) for output in outputs]
    if len(bodies) == 1:
        return [make(Op.CALL, bodies[0].dtype, tuple(arguments), bodies[0])]
    body = make(Op.TUPLE, dtypes.void, tuple(bodies))
    call = make(Op.CALL, dtypes.void, tuple(arguments), body)
    return [make(Op.ITEM, part.dtype, (call,), number) for number, part in enumerate(bodies)]
