"""Values with derivatives in closed form.

Decompositions run as loops whose own derivative nobody wants. Here their results are constants to
the gradient, and a rule brings the derivative: it maps small changes of the inputs to those of the
results, to first order. That is a linear function, which reverse mode turns around. A rule is
written in terms of the results, which have the same rule again, so derivatives of every order are
exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from weft.ir import movement
from weft.ir.build import items, one_or_tuple, tuple_of
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp, make
from weft.ir.walk import substitute
from weft.support.bounded_cache import BoundedCache
from weft.tensor.trace.tracing import Traced

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

Tensors = tuple["Tensor", ...]
# (results, inputs, changes of the inputs) -> changes of the results
TangentRule = Callable[[Tensors, Tensors, Tensors], Tensors]

# What CUSTOM_GRADIENT has for a rule, by the rule and what it is called with.
_ARGUMENTS: Final[BoundedCache[Any, Any]] = BoundedCache(256)


def with_tangent(results: Tensors, inputs: Tensors, rule: TangentRule) -> Tensors:
    """The results with the derivative that a rule states; it reads nothing but its arguments.

    >>> from weft.tensor import Tensor
    >>> x = Tensor([4.0])
    >>> def half(results, inputs, changes):
    ...     return (changes[0] / (results[0] * 2),)
    >>> (root,) = with_tangent((x.sqrt(),), (x,), half)
    >>> root.sum().gradient(x)[0].tolist()
    [0.25]
    """
    given, values = ([each.uop for each in part] for part in (inputs, results))
    key = (rule, results[0].device, *((node.dtype, shape_of(node)) for node in (*given, *values)))
    argument = _ARGUMENTS.get(key)
    if argument is None:
        argument = _ARGUMENTS[key] = _argument(values, given, rule, results[0].device)
    value = one_or_tuple(values)
    whole = make(Op.CUSTOM_GRADIENT, value.dtype, (value, *given), argument)
    parts = [whole] if len(values) == 1 else items(whole, values)
    return tuple(each._new(part) for each, part in zip(results, parts, strict=True))


def _argument(values: list[UOp], given: list[UOp], rule: TangentRule, device: str) -> Any:
    """The gradient of a rule, traced: it follows from dtypes and shapes alone."""
    from weft.tensor.autodiff.custom_gradient import with_gradient

    def gradient(inputs: Tensors, results: Any, seeds: Any) -> Tensors:
        has_several = isinstance(results, tuple)
        return _reversed(
            rule,
            inputs,
            results if has_several else (results,),
            seeds if has_several else (seeds,),
        )

    made = with_gradient(values, given, gradient, device)[0]
    return made.arg if len(values) == 1 else made.src[0].arg


def _reversed(rule: TangentRule, inputs: Tensors, results: Tensors, seeds: Tensors) -> Tensors:
    """The gradients of the inputs, given those of the results."""
    from weft.gradient.reverse import differentiate

    traced = Traced()
    changes = tuple(each._new(traced.enter(each.uop)) for each in inputs)
    moved = [each.uop for each in rule(results, inputs, changes)]
    seed = tuple_of(each.uop for each in seeds)
    found = differentiate(tuple_of(moved), traced.parameters, seed)
    # A linear function has a slope that does not depend on where it is taken.
    zeros = {each: movement.full(each.dtype, 0, shape_of(each)) for each in traced.parameters}
    return tuple(
        each.zeros_like() if slope is None else each._new(substitute(slope, zeros))
        for each, slope in zip(inputs, found, strict=True)
    )
