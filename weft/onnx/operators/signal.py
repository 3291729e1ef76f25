"""Fourier transforms, windows, mel filters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.ir.dtypes import dtypes
from weft.onnx.elements import dtype_of
from weft.onnx.table import op
from weft.onnx.values import whole_number
from weft.tensor.checks import known
from weft.tensor.tensor import Tensor


def _angles(rows: int, size: int, like: Tensor, is_inverse: bool) -> tuple[Tensor, Tensor]:
    """Cosines and sines of a transform: (rows, size)."""
    phases = np.outer(np.arange(rows), np.arange(size)) % size
    angle = 2 * np.pi * phases / size * (1 if is_inverse else -1)
    made = [Tensor(f(angle), device=like.device, dtype=like.dtype) for f in (np.cos, np.sin)]
    return made[0], made[1]


def transformed(
    x: Tensor, axis: int, length: int | None, is_inverse: bool, is_onesided: bool, is_real: bool
) -> Tensor:
    """The transform of pairs (…, 2) along an axis."""
    rows = x.movedim(axis, -2)  # (…, time, 1 or 2)
    own = known(rows.shape[-2])
    size = own if length is None else length
    if size <= own:
        rows = rows[..., :size, :]
    else:
        rows = rows.pad([*[(0, 0)] * (rows.ndim - 2), (0, size - own), (0, 0)])
    real = rows[..., 0]
    count = size // 2 + 1 if is_onesided else size
    if is_inverse and is_real:  # half a spectrum, whose other half is its mirror
        raise ValueError("a one-sided spectrum is handled by its caller")
    cos, sin = (each.transpose(0, 1) for each in _angles(count, size, x, is_inverse))
    a, b = real.matmul(cos), real.matmul(sin)
    if rows.shape[-1] == 2:
        imag = rows[..., 1]
        a, b = a - imag.matmul(sin), b + imag.matmul(cos)
    result = Tensor.stack(a, b, dim=-1)
    if is_inverse:
        result = result / size
    return result.movedim(-2, axis)


@op("DFT", since=17, host=(1,))
def dft_by_attribute(call: Any, x: Tensor, length: Any = None) -> Tensor:
    return _dft(call, x, length, call.get("axis", 1))


@op("DFT", since=20, host=(1, 2))
def dft(call: Any, x: Tensor, length: Any = None, axis: Any = None) -> Tensor:
    return _dft(call, x, length, -2 if axis is None else int(axis.reshape(-1)[0]))


def _dft(call: Any, x: Tensor, length: Any, axis: int) -> Tensor:
    axis %= x.ndim
    count = None if length is None else whole_number(length)
    is_inverse, is_onesided = bool(call.get("inverse", 0)), bool(call.get("onesided", 0))
    if not (is_inverse and is_onesided):
        return transformed(x, axis, count, is_inverse, is_onesided, False)
    half = x.movedim(axis, -2)
    own = known(half.shape[-2])
    size = count if count is not None else 2 * (own - 1)
    keep = size // 2 + 1
    half = half[..., :keep, :] if own >= keep else half.pad(
        [*[(0, 0)] * (half.ndim - 2), (0, keep - own), (0, 0)]
    )  # fmt: skip
    mirror = half[..., 1 : size - keep + 1, :].flip(-2)
    sign = Tensor(np.array([1.0, -1.0]), device=x.device, dtype=x.dtype)
    whole = half.cat(mirror * sign, dim=-2) if size > keep else half
    result = transformed(whole, whole.ndim - 2, None, True, False, False)[..., :1]
    return result.movedim(-2, axis)


@op("STFT", host=(1, 3))
def stft(call: Any, x: Tensor, step: Any, window: Tensor | None = None, length: Any = None) -> Any:
    """Transforms of frames (batch, frames, frequencies, 2)."""
    hop = whole_number(step)
    size = whole_number(length) if length is not None else window.shape[0]  # type: ignore[union-attr]
    rows = x if x.ndim == 3 else x.unsqueeze(-1)
    frames = rows.unfold(1, size, hop).transpose(2, 3)  # (batch, frames, time, 1 or 2)
    if window is not None:
        less = size - window.shape[0]
        window = window.pad([(less // 2, less - less // 2)]) if less > 0 else window
        frames = frames * window.reshape(1, 1, size, 1)
    return transformed(frames, 2, None, False, bool(call.get("onesided", 1)), True)


_WINDOWS = {
    "HannWindow": (0.5, 0.5, 0.0),
    "HammingWindow": (25.0 / 46.0, 1 - 25.0 / 46.0, 0.0),
    "BlackmanWindow": (0.42, 0.5, 0.08),
}


@op(*_WINDOWS, host=(0,))
def window_of(call: Any, size: Any) -> Tensor:
    count = whole_number(size)
    span = count if call.get("periodic", 1) else count - 1
    first, second, third = _WINDOWS[call.node.op]
    angle = Tensor.arange(count, dtype=dtypes.float64, device=call.device) * (2 * math.pi / span)
    values = first - second * angle.cos() + third * (2 * angle).cos()
    return values.cast(dtype_of(call.get("output_datatype", 1)))


@op("MelWeightMatrix", host=(0, 1, 2, 3, 4))
def mel_weights(call: Any, bins: Any, length: Any, rate: Any, low: Any, high: Any) -> Any:
    """Triangles of frequencies that are equally far apart to the ear."""
    count, size = int(bins), int(length)
    spectrum = size // 2 + 1
    bounds = [2595 * math.log10(1 + float(hertz) / 700) for hertz in (low, high)]
    mels = bounds[0] + np.arange(count + 2) * ((bounds[1] - bounds[0]) / (count + 2))
    hertz = 700 * (10 ** (mels / 2595) - 1)
    edges = np.floor((size + 1) * hertz / float(rate)).astype(np.int64)
    matrix = np.zeros((spectrum, count))
    for number in range(count):
        left, center, right = edges[number : number + 3]
        if center == left:
            matrix[center, number] = 1
        else:
            rising = np.arange(left, center + 1)
            matrix[rising, number] = (rising - left) / (center - left)
        if right > center:
            falling = np.arange(center, right)
            matrix[falling, number] = (right - falling) / (right - center)
    made = Tensor(matrix, device=call.device)
    return made.cast(dtype_of(call.get("output_datatype", 1)))
