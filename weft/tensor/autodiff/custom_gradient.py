"""Gradients written by hand, for `@function(gradient=...)` and `custom_kernel(..., gradient=...)`.

The function that gives the gradients is traced once, when the value is made, into a body of tensor
code. CUSTOM_GRADIENT attaches it to the value; reverse mode calls it, and may differentiate it
again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

from weft.ir.build import items, one_or_tuple, tuple_of
from weft.ir.ops import Op
from weft.ir.shapes import same_shape, shape_of
from weft.ir.uop import UOp, make
from weft.support.bounded_cache import BoundedCache
from weft.support.errors import ArgumentError, ArgumentTypeError, ShapeError
from weft.tensor.tensor import Tensor
from weft.tensor.trace.tracing import Traced, close_over

# (inputs, outputs, gradients of the outputs) -> gradients of the inputs
Gradient = Callable[[Any, Any, Any], Any]
# The bodies of gradients that depend on shapes and dtypes alone, by what they are made for.
_BODIES: Final[BoundedCache[Hashable, Any]] = BoundedCache(256)


def with_body(
    value: Tensor, inputs: Sequence[Tensor], key: Hashable, gradient: Gradient
) -> Tensor:
    """A value whose gradient reads its inputs only; its body is built once for a key.

    The key, with the shapes and dtypes of the inputs, says all that the body depends on.
    """
    sources = [each.uop for each in inputs]
    of_inputs = tuple((each.shape, each.dtype) for each in inputs)
    key_of_body = (key, of_inputs, value.dtype, value.device)
    arg = _BODIES.get(key_of_body)
    if arg is None:
        (node,) = with_gradient([value.uop], sources, gradient, value.device)
        arg = _BODIES[key_of_body] = node.arg
    return value._new(make(Op.CUSTOM_GRADIENT, value.dtype, (value.uop, *sources), arg))


def with_gradient(
    values: Sequence[UOp], inputs: Sequence[UOp], gradient: Gradient, device: str
) -> list[UOp]:
    """The same values, whose gradients with respect to the inputs are those of a function."""
    traced = Traced()

    def entered(nodes: Sequence[UOp]) -> list[Tensor | None]:
        """A tensor for each node; None for a gradient of what has none."""
        return [Tensor._value(traced.enter(node), device) for node in nodes]

    given, made = entered(inputs), entered(values)
    floats = [value for value in values if value.dtype.is_inexact]
    seeds = iter(entered(floats))
    of_values = [next(seeds) if value.dtype.is_inexact else None for value in values]
    found = gradient(tuple(given), _one_or_all(made), _one_or_all(of_values))
    parts = _require_gradients(found, inputs)
    slots = tuple(slot for slot, part in enumerate(parts) if part is not None)
    bodies, arguments = close_over([part.uop for part in parts if part is not None], traced)
    body = tuple_of(bodies)
    others = arguments[len(traced.arguments) :]
    value = one_or_tuple(values)
    arg = (body, len(inputs), slots)
    whole = make(Op.CUSTOM_GRADIENT, value.dtype, (value, *inputs, *others), arg)
    return [whole] if len(values) == 1 else items(whole, values)


def _one_or_all(tensors: list[Tensor | None]) -> Any:
    return tensors[0] if len(tensors) == 1 else tuple(tensors)


def _require_gradients(found: Any, inputs: Sequence[UOp]) -> list[Tensor | None]:
    """One gradient for each input, in its dtype and shape; None for inputs that have none."""
    parts = list(found) if isinstance(found, (tuple, list)) else [found]
    if len(parts) != len(inputs):
        raise ArgumentError(
            f"custom gradient: there are {len(inputs)} inputs and {len(parts)} gradients",
            rule="it returns a gradient for each input, None where there is none",
        )
    made: list[Tensor | None] = []
    for number, (part, node) in enumerate(zip(parts, inputs, strict=True)):
        if part is None or not node.dtype.is_inexact:
            made.append(None)
            continue
        if not isinstance(part, Tensor):
            raise ArgumentTypeError(
                f"custom gradient: the gradient of input {number} is {type(part).__name__}",
                rule="a gradient is a Tensor, or None",
            )
        if not same_shape(part.shape, shape_of(node)):
            raise ShapeError(
                f"custom gradient: the gradient of input {number} has another shape",
                facts=[("input", shape_of(node)), ("gradient", part.shape)],
                rule="a gradient has the shape of its input",
            )
        made.append(part.cast(node.dtype))
    return made
