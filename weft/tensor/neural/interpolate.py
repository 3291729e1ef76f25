"""`interpolate`: other sizes of the last axes, axis by axis, from the nearest one, two or four."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from weft.ir.build import Size
from weft.ir.dtypes import dtypes
from weft.ir.sizes import at_least, floor_quotient, least, minus, times
from weft.support.errors import ArgumentError, NotSupported, ShapeError
from weft.tensor.checks import known, least_fix, size_node, size_of
from weft.tensor.methods.unary import as_float

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

_MODES = {
    "nearest": "nearest",
    "nearest-exact": "nearest-exact",
    "linear": "linear",
    "bilinear": "linear",
    "trilinear": "linear",
    "bicubic": "cubic",
    "area": "area",
}
# The slope parameter of cubic convolution, as in PyTorch and OpenCV.
_CUBIC = -0.75
# Of a scale factor: floats that are not such a fraction are rounded, and so would be the sizes.
_MOST_DENOMINATOR = 1 << 10


class _Axis(NamedTuple):
    """An axis that gets another size, and how far apart its new elements are in the old ones."""

    axis: int
    size: Size
    new: Size
    step: float | Tensor  # a tensor where a size is symbolic
    align_corners: bool


def interpolate(
    self: Tensor,
    size: int | Sequence[int] | None = None,
    mode: str = "linear",
    align_corners: bool = False,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """Resample the axes after batch and channels to `size`, or by `scale_factor`.

    Modes are "nearest", "nearest-exact", "linear" (also "bilinear", "trilinear"), "bicubic" and
    "area". With `align_corners` the corner elements keep their values. PyTorch: interpolate.

    >>> from weft.tensor import Tensor
    >>> Tensor([[[0.0, 2.0]]]).interpolate((4,)).tolist()
    [[[0.0, 0.5, 1.5, 2.0]]]
    """
    if mode not in _MODES:
        raise ArgumentError(
            f"interpolate: unknown mode {mode!r}", rule="the modes are " + ", ".join(_MODES)
        )
    kind = _MODES[mode]
    if align_corners and kind not in ("linear", "cubic"):
        raise ArgumentError(
            f"interpolate: align_corners with mode {mode!r}",
            rule="align_corners belongs to linear and cubic modes",
        )
    axes = _axes(self, size, scale_factor, align_corners)
    if kind == "area":
        return self.adaptive_avg_pool2d([known(axis.new) for axis in axes])
    x = self if kind.startswith("nearest") else as_float(self)
    dtype = x.dtype
    x = x.float() if dtype.is_float and dtype.bits < 32 else x
    for axis in axes:
        x = _RESAMPLE[kind](x, axis)
    if self.dtype is dtypes.uint8 and not kind.startswith("nearest"):
        return x.round().clamp(0, 255).cast(dtypes.uint8)  # as in PyTorch
    return x.cast(dtype)


def _axes(self: Tensor, size: Any, scale_factor: Any, align_corners: bool) -> list[_Axis]:
    if (size is None) == (scale_factor is None):
        raise ArgumentError(
            "interpolate: give size or scale_factor", rule="exactly one of the two is given"
        )
    rank = max(self.ndim - 2, 0)
    asked = scale_factor if size is None else size
    listed = tuple(asked) if isinstance(asked, (tuple, list)) else (asked,) * rank
    if len(listed) > self.ndim or not listed:
        raise ShapeError(
            f"interpolate: {len(listed)} sizes for {self.ndim} axes",
            facts=[("shape", self.shape)],
            rule="there is a size for each of the last axes; one number is used for all but two",
        )
    found = []
    for number, each in enumerate(listed):
        axis = self.ndim - len(listed) + number
        old = self.shape[axis]
        new = scaled_size(old, each) if size is None else size_of("interpolate", each)
        if least(new) < 1 or least(old) < 1:
            raise ShapeError(
                f"interpolate: axis {axis} of size {old} cannot become {new}",
                rule="sizes are 1 or more",
                fix=least_fix(old, new),
            )
        step = 1 / each if size is None else _ratio(self, old, new)
        if align_corners:
            step = _ratio(self, minus(old, 1), minus(new, 1))
        found.append(_Axis(axis, old, new, step, align_corners))
    return found


def scaled_size(size: Size, factor: float) -> Size:
    """The size that a scale factor makes, rounded down.

    >>> from weft.ir.build import variable
    >>> scaled_size(5, 1.5), scaled_size(variable("n", 1, 8) * 2, 1.5)
    (7, (n * 3))
    """
    if isinstance(size, int):
        return int(size * factor)
    exact = Fraction(factor)
    if exact.denominator > _MOST_DENOMINATOR:
        raise NotSupported(
            f"interpolate: the scale factor {factor} of a symbolic size",
            facts=[("size", size)],
            rule="a factor of a symbolic size is a whole number, or a fraction such as 0.5, 0.75",
            fix="give the sizes: size=(...), made of the Variable",
        )
    return floor_quotient(times(size, exact.numerator), exact.denominator)


def _ratio(x: Tensor, a: Size, b: Size) -> float | Tensor:
    """a / b; 0 where b is 0."""
    if isinstance(a, int) and isinstance(b, int):
        return a / b if b else 0.0
    dtype = dtypes.float64 if x.dtype is dtypes.float64 else dtypes.float32
    above, below = (x._new(size_node(size, dtype)) for size in (a, at_least(b, 1)))
    ratio = above / below
    return ratio if least(b) else (x._new(size_node(b, dtype)) > 0).where(ratio, 0.0)


def _counted(x: Tensor, axis: _Axis) -> Tensor:
    """0, 1, 2, … as floats, for each new element."""
    dtype = dtypes.float64 if x.dtype is dtypes.float64 else dtypes.float32
    return x.arange(axis.new, dtype=dtype, device=x.device)


def _picked(x: Tensor, axis: _Axis, index: Tensor) -> Tensor:
    inside = index.maximum(0).minimum(minus(axis.size, 1)).int()
    return x[(*(slice(None),) * axis.axis, inside)]


def _along(weights: Tensor, x: Tensor, axis: _Axis) -> Tensor:
    """Weights for an axis, in a shape that multiplies the tensor."""
    return weights.cast(x.dtype).reshape((-1, *[1] * (x.ndim - axis.axis - 1)))


def _nearest(x: Tensor, axis: _Axis) -> Tensor:
    return _picked(x, axis, (_counted(x, axis) * axis.step).floor())


def _nearest_exact(x: Tensor, axis: _Axis) -> Tensor:
    return _picked(x, axis, ((_counted(x, axis) + 0.5) * axis.step).floor())


def _positions(x: Tensor, axis: _Axis) -> Tensor:
    """Where the new elements lie among the old ones."""
    counted = _counted(x, axis)
    if axis.align_corners:
        return counted * axis.step
    return (counted + 0.5) * axis.step - 0.5


def _linear(x: Tensor, axis: _Axis) -> Tensor:
    position = _positions(x, axis).clamp(min_=0)
    low = position.floor()
    part = _along((position - low).clamp(0, 1), x, axis)
    return _picked(x, axis, low) * (1 - part) + _picked(x, axis, low + 1) * part


def _cubic(x: Tensor, axis: _Axis) -> Tensor:
    position = _positions(x, axis)
    low = position.floor()
    t = position - low
    total: Any = 0.0
    for tap, weight in enumerate((_outer(t + 1), _inner(t), _inner(1 - t), _outer(2 - t))):
        total = _picked(x, axis, low + (tap - 1)) * _along(weight, x, axis) + total
    result: Tensor = total
    return result


def _inner(t: Tensor) -> Tensor:
    """The weight of an element at a distance from 0 to 1."""
    return ((_CUBIC + 2) * t - (_CUBIC + 3)) * t * t + 1


def _outer(t: Tensor) -> Tensor:
    """The weight of an element at a distance from 1 to 2."""
    return ((_CUBIC * t - 5 * _CUBIC) * t + 8 * _CUBIC) * t - 4 * _CUBIC


_RESAMPLE = {
    "nearest": _nearest,
    "nearest-exact": _nearest_exact,
    "linear": _linear,
    "cubic": _cubic,
}
