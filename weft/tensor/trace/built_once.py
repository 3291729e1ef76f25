"""Functions of several ops that build their graph once for each kind of operand.

A softmax is nine nodes, and the methods that make them check, broadcast and promote what is the
same in every call. What they made of a placeholder is kept as a list of steps; a call on another
tensor of the same dtype and shape goes through the list, and gives the nodes that the methods
would give.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from weft.ir.build import param
from weft.ir.dtypes import FLOAT, DType
from weft.ir.ops import Op
from weft.ir.shapes import Shape, shape_of
from weft.ir.uop import UOp, make, on_sweep
from weft.ir.walk import topological
from weft.support.bounded_cache import BoundedCache
from weft.support.source_line import user_line
from weft.tensor.autodiff.modes import grad_mode
from weft.tensor.storage import Storage

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

Function = TypeVar("Function", bound=Callable[..., Any])
Sources = Callable[[list[UOp]], tuple[UOp, ...]]

# What depends on more than the operand: memory, devices, variables, bodies of their own.
_OUTSIDE: Final = sum(
    1 << op
    for op in (Op.BUFFER, Op.AFTER, Op.CALL, Op.CUSTOM_GRADIENT, Op.COPY, Op.SHARD, Op.VARIABLE)
)
# Arguments that are the same whenever they are equal, and hold nothing.
_PLAIN: Final = frozenset((bool, int, float, str, type(None)))


class Step(NamedTuple):
    """A node over values that are there: the operand, constants, and the steps before."""

    op: int
    dtype: DType
    sources: Sources
    arg: Any
    shape: Shape | None
    has_line: bool


class Recorded(NamedTuple):
    """What a function made of an operand."""

    constants: list[UOp]
    steps: list[Step]


_RECORDED: Final[BoundedCache[tuple[Any, ...], Recorded | None]] = BoundedCache(512)
on_sweep(_RECORDED.clear)


def built_once(function: Function) -> Function:
    """Let a function of a tensor and numbers build its graph once for each kind of tensor.

    It may depend on nothing else: no setting, no memory. Floats of 32 bits and more have their
    graph kept; the function runs for all others.
    """

    @wraps(function)
    def call(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        device = x._storage.device
        node = x.uop
        if device.__class__ is not str or node.dtype.kind != FLOAT or node.dtype.bits < 32:
            return function(x, *args, **kwargs)
        shape = node.known_shape or shape_of(node)
        given = (*args, *kwargs.values())
        kinds = tuple(map(type, given))
        if not _PLAIN.issuperset(kinds):
            return function(x, *args, **kwargs)
        key = (function, node.dtype, shape, device, grad_mode.is_off, given, kinds, *kwargs)
        try:
            found = _RECORDED[key]
        except KeyError:
            found = _RECORDED[key] = _try_record(function, x, shape, args, kwargs)
        if found is None:
            return function(x, *args, **kwargs)
        return x._value(_replayed(found, node), device)

    return call  # type: ignore[return-value]


def _replayed(recorded: Recorded, node: UOp) -> UOp:
    """The nodes of the steps, over another operand."""
    values = [node, *recorded.constants]
    line = user_line(1)
    for op, dtype, sources, arg, shape, has_line in recorded.steps:
        made = make(op, dtype, sources(values), arg)
        if made.known_shape is None:
            made.known_shape = shape
        if has_line and made.line is None:
            made.line = line
        values.append(made)
    return values[-1]


def _try_record(
    function: Callable[..., Any], x: Tensor, shape: Shape, args: Any, kwargs: Any
) -> Recorded | None:
    """The steps of a function on a placeholder; None where it has to run each time."""
    if not all(size.__class__ is int for size in shape):
        return None
    placeholder = param(0, x.dtype, shape)
    result = function(x._of(Storage(placeholder, x._storage.device)), *args, **kwargs).uop
    if result.ops & _OUTSIDE or not result.ops >> Op.PARAM & 1 or result is placeholder:
        return None
    constants: list[UOp] = []
    parts: list[UOp] = []
    for node in topological(result, enter=lambda node: bool(node.ops >> Op.PARAM & 1)):
        if node is not placeholder:
            (parts if node.ops >> Op.PARAM & 1 else constants).append(node)
    numbers = {node: number for number, node in enumerate((placeholder, *constants, *parts))}
    steps = [
        Step(
            *(node.op, node.dtype, _sources([numbers[source] for source in node.src])),
            *(node.arg, shape_of(node), node.line is not None),
        )
        for node in parts
    ]
    return Recorded(constants, steps)


def _sources(numbers: list[int]) -> Sources:
    """The values of these numbers, as a tuple."""
    if len(numbers) > 1:
        return itemgetter(*numbers)
    (number,) = numbers
    return lambda values: (values[number],)
