"""Values with derivatives in closed form.

Decompositions run as loops whose own derivative nobody wants. Here their results are constants to
the gradient, and a term that is 0 brings the derivative: `rule` maps a small change of the inputs
to that of the results, to first order, as a linear function that reverse mode turns around. The
rule is evaluated at the middle of the change, so second derivatives are exact too; third ones are
not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

Tensors = tuple["Tensor", ...]


def with_tangent(
    results: Tensors, source: Tensor, rule: Callable[[Tensors, Tensor, Tensor], Tensors]
) -> Tensors:
    """The results with the derivative that `rule(results, source, change)` states.

    >>> from weft.tensor import Tensor
    >>> x = Tensor([4.0])
    >>> (root,) = with_tangent((x.sqrt(),), x, lambda r, x, dx: (dx / (r[0] * 2),))
    >>> root.sum().gradient(x)[0].tolist()
    [0.25]
    """
    fixed = tuple(each.detach() for each in results)
    center = source.detach()
    change = source - center
    half = change * 0.5
    first = rule(fixed, center, half)
    middle = tuple(a + b for a, b in zip(fixed, first, strict=True))
    second = rule(middle, center + half, change)
    return tuple(a + b for a, b in zip(fixed, second, strict=True))
