"""Branches and loops on values of tensors, as functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.tensor.tensor import Tensor
from weft.tensor.trace.state import tracing
from weft.tensor.trees import map_tensors


def _chosen(pred: Tensor, one: Any, other: Any) -> Any:
    """The values of one structure or of another, where nothing may be read."""
    if isinstance(one, Tensor):
        return pred.where(one, other)
    if isinstance(one, dict):
        return {key: _chosen(pred, one[key], other[key]) for key in one}
    if isinstance(one, (list, tuple)):
        return type(one)(_chosen(pred, x, y) for x, y in zip(one, other, strict=True))
    return one


def cond(
    pred: Any,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    operands: Any = (),
) -> Any:
    """Call one of two functions. PyTorch: cond.

    The condition is read. While a function is traced it cannot be: then both are called, and
    their results chosen from, so they have no effects and the same shapes.

    >>> cond(Tensor(2.0) > 1, lambda x: x + 1, lambda x: x - 1, (Tensor([1.0]),)).tolist()
    [2.0]
    """
    if not isinstance(pred, Tensor) or not (tracing.trace or tracing.depth):
        return (true_fn if bool(pred) else false_fn)(*operands)
    return _chosen(pred, true_fn(*operands), false_fn(*operands))


def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any
) -> tuple[Any, ...]:
    """Call a function on its results while a condition holds, which is read each time.

    PyTorch: while_loop. Inside of a traced function a loop has a fixed number of iterations:
    `weft.scan`.

    >>> while_loop(lambda i: i < 3, lambda i: (i + 1,), (Tensor(0),))[0].item()
    3
    """
    state = tuple(carried_inputs)
    while bool(cond_fn(*state)):
        found = body_fn(*state)
        state = tuple(found) if isinstance(found, (tuple, list)) else (found,)
        state = map_tensors(state, lambda x: x.realize())
    return state
