"""One body, called many times in a row: loops of linear algebra and of other iterations.

The step is traced once and becomes a body, two calls of it become the body of two turns, two of
those that of four, and so on. A graph of n turns so has about log2(n) bodies, each scheduled once,
and time to trace, schedule and compile hardly grows with n. A step is pure: it sees its state and
constants and nothing else, and which turn it is must show in the state. Algorithms here arrange
their state so that a step always works at the same place, and moves the next piece of work there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from weft.ir.build import call, param
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, make

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

State = tuple["Tensor", ...]


def repeated(step: Callable[..., State], count: int, *state: Tensor) -> State:
    """The state after `count` turns of a step that keeps its shapes and dtypes.

    >>> from weft.tensor import Tensor
    >>> [x.tolist() for x in repeated(lambda a, b: (b, a + b), 5, Tensor([0]), Tensor([1]))]
    [[5], [8]]
    """
    if not count:
        return state
    inside = [each._new(param(slot, each.dtype, each.shape)) for slot, each in enumerate(state)]
    body = make(Op.TUPLE, dtypes.void, tuple(each.uop for each in step(*inside)))
    parameters = [each.uop for each in inside]
    values = [each.uop for each in state]
    while True:
        if count & 1:  # the body has as many turns as this bit stands for
            values = _called(body, values)
        count >>= 1
        if not count:
            return tuple(each._new(value) for each, value in zip(state, values, strict=True))
        twice = _called(body, _called(body, parameters))
        body = make(Op.TUPLE, dtypes.void, tuple(twice))


def _called(body: UOp, arguments: list[UOp]) -> list[UOp]:
    """The results of a call."""
    done = call(body, *arguments)
    return [make(Op.ITEM, part.dtype, (done,), number) for number, part in enumerate(body.src)]
