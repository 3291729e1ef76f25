"""Resize along an axis of symbolic size: positions and weights are computed, not made by the host.

The new elements of an axis are sums of a few old ones. Which ones, and with what weights, is the
arithmetic of `resize.py`, on tensors that count the new elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from weft.ir.dtypes import dtypes
from weft.ir.sizes import minus
from weft.tensor.tensor import Tensor

# A size that shows whether the nearest elements are repeated or skipped evenly.
_SAMPLE = 12
# What should be a whole number is one, although scales are rounded.
_SNAP = 1e-6


def _number(x: Tensor, size: Any) -> Any:
    """A size as a tensor of float64, or an int."""
    return size if isinstance(size, int) else Tensor(size, device=x.device, dtype="float64")


def positions(call: Any, x: Tensor, new: Any, old: Any, scale: Any) -> Tensor:
    """Where the new elements lie among the old ones, in float64."""
    count = Tensor.arange(new, device=x.device).cast(dtypes.float64)
    how = call.get("coordinate_transformation_mode", "half_pixel")
    if scale is None:
        scale = _number(x, new) / _number(x, old)
    if how == "half_pixel":
        return (count + 0.5) / scale - 0.5
    if how == "pytorch_half_pixel":
        where = (count + 0.5) / scale - 0.5
        return where if isinstance(new, int) and new > 1 else (_number(x, new) > 1).where(where, 0)
    if how == "half_pixel_symmetric":
        adjust = _number(x, new) / (_number(x, old) * scale)
        return _number(x, old) / 2 * (1 - adjust) + (count + 0.5) / scale - 0.5
    if how == "align_corners":
        length = _number(x, old) * scale - 1
        return (length > 0).where(count * (_number(x, old) - 1) / length, 0)
    if how == "asymmetric":
        return count / scale
    if how == "tf_half_pixel_for_nn":
        return (count + 0.5) / scale
    raise call.error(
        f"coordinate_transformation_mode {how!r} of a symbolic size",
        "boxes are cut out of axes of known size; other modes take symbolic ones",
    )


def resized_axis(
    call: Any, x: Tensor, axis: int, new: Any, scale: Any, mode: str, nearest: Callable[..., Any]
) -> Tensor:
    """An axis in another size; `scale` is a number, or None where it is new / old."""
    old = x.shape[axis]
    if mode == "nearest":
        repeated = _try_even(call, x, axis, scale, nearest)
        return _nearest(call, x, axis, new, scale) if repeated is None else repeated
    return _interpolated(call, x, axis, new, old, scale, mode)


def _try_even(call: Any, x: Tensor, axis: int, scale: Any, nearest: Any) -> Tensor | None:
    """Elements repeated, or every few of them, where a sample shows that this is all."""
    how = call.get("coordinate_transformation_mode", "half_pixel")
    if scale is None or how in ("align_corners", "half_pixel_symmetric"):
        return None
    times = round(scale)
    if times >= 1 and times == scale:
        index = nearest(call, _SAMPLE * times, _SAMPLE, scale)
        is_even = np.array_equal(index, np.arange(_SAMPLE * times) // times)
        return x.repeat_interleave(times, axis) if is_even else None
    return None


def _nearest(call: Any, x: Tensor, axis: int, new: Any, scale: Any) -> Tensor:
    old = x.shape[axis]
    where = positions(call, x, new, old, scale)
    whole = where.round()
    where = ((where - whole).abs() < _SNAP).where(whole, where)
    how = call.get("nearest_mode", "round_prefer_floor")
    if not isinstance(how, str):  # as opset 10 has it
        how = "floor" if scale is not None and scale >= 1 else "ceil"
    near = {
        "round_prefer_floor": lambda: (where - 0.5).ceil(),
        "round_prefer_ceil": lambda: (where + 0.5).floor(),
        "floor": where.floor,
        "ceil": where.ceil,
    }
    if how not in near:
        raise call.error(f"nearest_mode {how!r}", "modes are " + ", ".join(near))
    return _picked(x, axis, near[how]())


def _picked(x: Tensor, axis: int, index: Tensor) -> Tensor:
    inside = index.cast(dtypes.int64).maximum(0).minimum(minus(x.shape[axis], 1))
    return x[(*(slice(None),) * axis, inside)]


def _kernel(mode: str, distance: Tensor, a: float) -> Tensor:
    d = distance.abs()
    if mode == "linear":
        return (1 - d).maximum(0)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return (d <= 1).where(near, (d < 2).where(far, 0.0))


def _interpolated(
    call: Any, x: Tensor, axis: int, new: Any, old: Any, scale: Any, mode: str
) -> Tensor:
    where = positions(call, x, new, old, scale)
    stretch = 1.0
    if call.get("antialias", 0):
        if scale is None:
            raise call.error("antialias to a symbolic size", "it needs scales, or known sizes")
        stretch = min(scale, 1.0)
    reach = math.ceil((1 if mode == "linear" else 2) / stretch)
    first = where.floor()
    a, is_inside = call.get("cubic_coeff_a", -0.75), bool(call.get("exclude_outside", 0))
    wide = dtypes.float64 if x.dtype is dtypes.float64 else dtypes.float32
    shape = (-1, *[1] * (x.ndim - axis - 1))
    total: Any = 0.0
    weights: Any = 0.0
    for tap in range(1 - reach, reach + 1):
        position = first + tap
        share = _kernel(mode, (position - where) * stretch, a)
        if is_inside:
            share = ((position >= 0) & (position <= minus(old, 1))).where(share, 0.0)
        weights = share + weights
        total = _picked(x, axis, position).cast(wide) * share.cast(wide).reshape(shape) + total
    if mode == "linear" and not is_inside and stretch == 1.0:
        return rounded_back(total, x)  # two weights add up to 1
    return rounded_back(total / weights.cast(wide).reshape(shape), x)


def rounded_back(value: Tensor, x: Tensor) -> Tensor:
    """A resized value in the dtype that it had."""
    if x.dtype.is_float:
        return value.cast(x.dtype)
    return value.round().clamp(float(x.dtype.min), float(x.dtype.max)).cast(x.dtype)
