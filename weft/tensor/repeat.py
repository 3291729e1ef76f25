"""One body, called many times in a row: loops of linear algebra and of other iterations.

The step is traced once and becomes the body of a chain of CALLs, so that time to trace, schedule
and compile does not grow with the number of turns. A step is pure: it sees its state and constants
and nothing else, and which turn it is must show in the state. Algorithms here arrange their state
so that a step always works at the same place, and moves the next piece of work there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from weft.ir.build import call, param
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import make

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
    values = [each.uop for each in state]
    for _ in range(count):
        done = call(body, *values)
        values = [
            make(Op.ITEM, part.dtype, (done,), number) for number, part in enumerate(body.src)
        ]
    return tuple(each._new(value) for each, value in zip(state, values, strict=True))
