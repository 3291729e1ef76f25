"""Finite differences along axes, as torch.gradient and numpy.gradient compute them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.support.errors import ArgumentError, ShapeError
from weft.tensor.checks import axes_of, known
from weft.tensor.methods.unary import as_float

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def differences(self: Tensor, spacing: Any, dim: Any, edge_order: int) -> list[Tensor]:
    """The slopes along axes: of second order inside, of `edge_order` at both ends.

    `spacing` is a distance, one for each axis, or tensors of coordinates.

    >>> from weft.tensor import Tensor
    >>> differences(Tensor([1.0, 2.0, 4.0]), 1.0, None, 1)[0].tolist()
    [1.0, 1.5, 2.0]
    """
    if edge_order not in (1, 2):
        raise ArgumentError(f"gradient: edge_order is {edge_order}", rule="it is 1 or 2")
    axes = axes_of("gradient", dim, self.ndim)
    each = spacing if isinstance(spacing, (list, tuple)) else [spacing] * len(axes)
    if len(each) != len(axes):
        raise ArgumentError(f"gradient: {len(each)} spacings for {len(axes)} axes")
    x = as_float(self)
    pairs = zip(axes, each, strict=True)
    return [_along(x, axis, 1.0 if step is None else step, edge_order) for axis, step in pairs]


def _along(x: Tensor, axis: int, step: Any, order: int) -> Tensor:
    y = x.movedim(axis, -1)
    size = known(y.shape[-1])
    if size < order + 1:
        raise ShapeError(
            f"gradient: {size} elements along axis {axis}",
            rule="there are more elements than edge_order",
        )
    steps = _steps(x, step, size)  # (size - 1,)
    slopes = (y[..., 1:] - y[..., :-1]) / steps
    before, after = steps[:-1], steps[1:]
    inner = (slopes[..., :-1] * after + slopes[..., 1:] * before) / (before + after)
    first, last = slopes[..., :1], slopes[..., -1:]
    if order == 2:
        # The parabola through the three elements at each end.
        first = first + (first - slopes[..., 1:2]) * (steps[:1] / (steps[:1] + steps[1:2]))
        last = last + (last - slopes[..., -2:-1]) * (steps[-1:] / (steps[-1:] + steps[-2:-1]))
    parts = [first, inner, last] if size > 2 else [first, last]
    return parts[0].cat(*parts[1:], dim=-1).movedim(-1, axis)


def _steps(x: Tensor, step: Any, size: int) -> Tensor:
    if isinstance(step, x.__class__) and step.ndim:
        return step.diff().cast(x.dtype)
    whole = x.ones((size - 1,), dtype=x.dtype, device=x.device)
    return whole * step  # type: ignore[no-any-return]
