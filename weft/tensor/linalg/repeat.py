"""One body, called many times in a row: loops of linear algebra and of other iterations.

The step is traced once and becomes a body, which `trace/doubling.py` doubles. A step is pure: it
sees its state and constants and nothing else, and which iteration it is must show in the state.
Algorithms here arrange their state so that a step always works at the same index, and moves the
next piece of work there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from weft.ir.build import call_results, param, tuple_of
from weft.ir.uop import UOp
from weft.tensor.trace.doubling import doubled, in_powers

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

State = tuple["Tensor", ...]


def repeated(step: Callable[..., State], count: int, *state: Tensor) -> State:
    """The state after `count` iterations of a step that keeps its shapes and dtypes.

    >>> from weft.tensor import Tensor
    >>> [x.tolist() for x in repeated(lambda a, b: (b, a + b), 5, Tensor([0]), Tensor([1]))]
    [[5], [8]]
    """
    if not count:
        return state
    inside = [each._new(param(slot, each.dtype, each.shape)) for slot, each in enumerate(state)]
    parameters = [each.uop for each in inside]

    def twice(body: UOp, half: int) -> UOp:
        return tuple_of(call_results(body, *call_results(body, *parameters)))

    bodies = doubled(tuple_of(each.uop for each in step(*inside)), count, twice)
    values = [each.uop for each in state]
    for bit, _ in in_powers(count):
        values = call_results(bodies[bit], *values)
    return tuple(each._new(value) for each, value in zip(state, values, strict=True))
