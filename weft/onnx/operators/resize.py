"""Resize and Upsample: other sizes of axes, from the nearest elements, two, or four.

Each axis is one product with a matrix of weights (new size, old size), which the host makes; the
nearest element is a gather, or a view where elements are repeated or skipped evenly.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.ir.dtypes import dtypes
from weft.ir.shapes import same_size
from weft.onnx.operators.movement import sizes_of
from weft.onnx.operators.resize_symbolic import resized_axis, rounded_back
from weft.onnx.real_sizes import InexactSizeError, RealSize
from weft.onnx.table import op
from weft.tensor.tensor import Tensor

Array = Any


def _positions(call: Any, new: int, old: int, scale: float, roi: Any) -> Array:
    """Where the new elements lie among the old ones."""
    x = np.arange(new, dtype=np.float64)
    how = call.get("coordinate_transformation_mode", "half_pixel")
    length = scale * old
    if how == "half_pixel":
        return (x + 0.5) / scale - 0.5
    if how == "pytorch_half_pixel":
        return (x + 0.5) / scale - 0.5 if new > 1 else np.zeros(new)
    if how == "half_pixel_symmetric":
        adjust = new / length
        center = old / 2
        return center * (1 - adjust) + (x + 0.5) / scale - 0.5
    if how == "align_corners":
        return x * (old - 1) / (length - 1) if length != 1 else np.zeros(new)
    if how == "asymmetric":
        return x / scale
    if how == "tf_half_pixel_for_nn":
        return (x + 0.5) / scale
    if how == "tf_crop_and_resize":
        start, end = roi
        if new > 1:
            return start * (old - 1) + x * (end - start) * (old - 1) / (new - 1)
        return np.full(new, 0.5 * (start + end) * (old - 1))
    raise call.error(f"coordinate_transformation_mode {how!r}")


_BY_SCALE = object()  # the nearest_mode of files before there was one


def _nearest(call: Any, where: Array, old: int, scale: float) -> Array:
    how = call.get("nearest_mode", "round_prefer_floor")
    if how == _BY_SCALE:  # as onnxruntime has it, where opset 10 does not say
        how = "floor" if scale >= 1 else "ceil"
    near = {
        "round_prefer_floor": lambda: np.ceil(where - 0.5),
        "round_prefer_ceil": lambda: np.floor(where + 0.5),
        "floor": lambda: np.floor(where),
        "ceil": lambda: np.ceil(where),
    }
    if how not in near:
        raise call.error(f"nearest_mode {how!r}", "modes are " + ", ".join(near))
    # What should be a whole number is one, although scales are rounded.
    snapped = np.where(np.abs(where - np.round(where)) < 1e-6, np.round(where), where)
    where = snapped
    return np.clip(near[how](), 0, old - 1).astype(np.int64)


def _kernel(mode: str, distance: Array, a: float) -> Array:
    """The weight of an element at a distance."""
    d = np.abs(distance)
    if mode == "linear":
        return np.maximum(1 - d, 0)
    near = (a + 2) * d**3 - (a + 3) * d**2 + 1
    far = a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))


def _weights(call: Any, mode: str, where: Array, old: int, scale: float) -> Array:
    """The matrix (new, old) of one axis."""
    a = call.get("cubic_coeff_a", -0.75)
    stretch = 1.0
    if call.get("antialias", 0) and scale < 1:
        stretch = scale
    reach = math.ceil((1 if mode == "linear" else 2) / stretch)
    first = np.floor(where).astype(np.int64)
    matrix = np.zeros((where.size, old))
    taps = np.arange(-reach + 1, reach + 1)
    positions = first[:, None] + taps[None]
    share = _kernel(mode, (positions - where[:, None]) * stretch, a)
    if call.get("exclude_outside", 0):
        share = np.where((positions >= 0) & (positions < old), share, 0.0)
    total = share.sum(1, keepdims=True)
    share = share / np.where(total == 0, 1, total)
    rows = np.broadcast_to(np.arange(where.size)[:, None], positions.shape)
    np.add.at(matrix, (rows, np.clip(positions, 0, old - 1)), share)
    return matrix


def _sampled(call: Any, new: int, old: int, scale: float) -> Array:
    """The nearest elements of an axis of known size."""
    return _nearest(call, _positions(call, new, old, scale, (0.0, 1.0)), old, scale)


def _resized(call: Any, x: Tensor, sizes: list[Any], scales: list[Any], rois: Any) -> Tensor:
    """Axis by axis; a scale of None is that of a symbolic size to another."""
    mode = {"bilinear": "linear"}.get(call.get("mode", "nearest"), call.get("mode", "nearest"))
    if mode not in ("nearest", "linear", "cubic"):
        raise call.error(f"mode {mode!r}", "modes are nearest, linear, cubic")
    crops = call.get("coordinate_transformation_mode") == "tf_crop_and_resize"
    outside: list[Any] = []
    for axis, (new, scale) in enumerate(zip(sizes, scales, strict=True)):
        old = x.shape[axis]
        if same_size(new, old) and (scale is None or scale == 1.0) and not crops:
            continue
        if not isinstance(old, int) or not isinstance(new, int):
            x = resized_axis(call, x, axis, new, scale, mode, _sampled)
            continue
        where = _positions(call, new, old, scale, rois[axis])
        if crops:
            outside.append((axis, (where < 0) | (where > old - 1)))
        if mode == "nearest":
            x = _picked(x, axis, _nearest(call, where, old, scale))
            continue
        matrix = _weights(call, mode, where, old, scale)
        wide = dtypes.float64 if x.dtype is dtypes.float64 else dtypes.float32
        weights = Tensor(matrix, device=x.device, dtype=wide)
        moved = x.movedim(axis, -1).cast(wide).matmul(weights.transpose(0, 1))
        x = rounded_back(moved, x).movedim(-1, axis)
    for axis, is_out in outside:
        if is_out.any():
            shape = [1] * x.ndim
            shape[axis] = is_out.size
            flag = Tensor(is_out, device=x.device).reshape(shape)
            x = flag.where(call.get("extrapolation_value", 0.0), x).cast(x.dtype)
    return x


def _picked(x: Tensor, axis: int, index: Array) -> Tensor:
    """Elements of an axis by number; repeated and skipped ones without looking numbers up."""
    old, new = x.shape[axis], index.size
    if new % max(old, 1) == 0 and np.array_equal(index, np.arange(new) // (new // old)):
        return x.repeat_interleave(new // old, axis)
    step = int(index[1] - index[0]) if new > 1 else 0
    if step > 0 and np.array_equal(index, index[0] + step * np.arange(new)):
        cut = [slice(None)] * x.ndim
        cut[axis] = slice(int(index[0]), int(index[-1]) + 1, step)
        return x[tuple(cut)]
    return x.index_select(axis, Tensor(index, device=x.device))


@op("Upsample", host=(1,))
def upsample(call: Any, x: Tensor, scales: Any = None) -> Tensor:
    factors = list(call.get("scales") if scales is None else scales.reshape(-1))
    call.attributes = {
        **call.attributes,
        "coordinate_transformation_mode": "asymmetric",
        "nearest_mode": _BY_SCALE,
    }
    sizes = [
        _scaled(call, size, float(scale)) for size, scale in zip(x.shape, factors, strict=True)
    ]
    return _resized(call, x, sizes, [float(each) for each in factors], [None] * x.ndim)


@op("Resize", since=10, host=(1,))
def resize_by_scales(call: Any, x: Tensor, scales: Any) -> Tensor:
    return upsample(call, x, scales)


def _scaled(call: Any, size: Any, scale: float) -> Any:
    """A size times a scale, rounded down."""
    if isinstance(size, int):
        return math.floor(size * scale)
    try:
        return (RealSize.of(size) * scale).floor().size
    except InexactSizeError:
        raise call.error(
            f"the scale {scale} of the symbolic size {size}",
            "scales of symbolic sizes are fractions such as 2, 0.5 and 0.75",
        ) from None


def _ratio(new: Any, old: Any) -> float | None:
    """new / old, where that is a number."""
    try:
        found = RealSize.of(new) / old
    except InexactSizeError:
        return None
    return found.size / found.by if isinstance(found.size, int) else None


@op("Resize", since=11, host=(1, 2, 3))
def resize(call: Any, x: Tensor, roi: Any = None, scales: Any = None, sizes: Any = None) -> Tensor:
    axes = [axis % x.ndim for axis in call.get("axes") or range(x.ndim)]
    rank = x.ndim
    whole_scales: list[Any] = [1.0] * rank
    whole_sizes: list[Any] = list(x.shape)
    if sizes is not None and sizes.size:
        wanted = sizes_of(sizes)
        each = zip(axes, wanted, strict=True)
        ratios: list[Any] = [_ratio(size, x.shape[axis]) for axis, size in each]
        policy = call.get("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch" and None in ratios:
            raise call.error(
                f"keep_aspect_ratio_policy {policy!r} of symbolic sizes",
                "symbolic sizes are stretched; the ratio of others is known",
            )
        if policy != "stretch":
            chosen = min(ratios) if policy == "not_larger" else max(ratios)
            ratios = [chosen] * len(axes)
            wanted = [math.floor(chosen * x.shape[axis] + 0.5) for axis in axes]
        for axis, size, ratio in zip(axes, wanted, ratios, strict=True):
            whole_sizes[axis], whole_scales[axis] = size, ratio
    else:
        for axis, scale in zip(axes, scales.reshape(-1), strict=True):
            if float(scale) == 1.0:  # the axis stays, also one of a symbolic size
                continue
            whole_scales[axis] = float(scale)
            whole_sizes[axis] = _scaled(call, x.shape[axis], float(scale))
    rois: list[Any] = [(0.0, 1.0)] * rank
    if roi is not None and roi.size:
        half = roi.size // 2
        for number, axis in enumerate(axes):
            rois[axis] = (float(roi[number]), float(roi[half + number]))
    return _resized(call, x, whole_sizes, whole_scales, rois)
