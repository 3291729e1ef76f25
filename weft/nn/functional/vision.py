"""Images: other sizes, sampling at points, pixels and channels in another order, patches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.ir.shapes import Shape
from weft.ir.sizes import plus, times, try_quotient
from weft.ir.uop import UOp
from weft.support.errors import ArgumentError, ShapeError
from weft.tensor.checks import known, multiple_fix
from weft.tensor.neural.interpolate import scaled_size
from weft.tensor.neural.windows import Frame, summed_windows, window_count, windows
from weft.tensor.tensor import Tensor

Ints = int | Sequence[int]


def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """Elements around the last axes; pairs for the last axis first."""
    return input.pad(tuple(pad), mode, 0.0 if value is None else value)


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resample the axes after batch and channels."""
    rank = input.ndim - 2
    if antialias:
        return _antialiased(input, _sizes(input, size, scale_factor), mode, bool(align_corners))
    if size is None and (recompute_scale_factor or mode == "area"):
        size, scale_factor = _sizes(input, size, scale_factor), None
    if isinstance(size, (int, UOp)):
        size = (size,) * rank
    return input.interpolate(size, mode, bool(align_corners), scale_factor)


def _sizes(x: Tensor, size: Any, scale: Any) -> Shape:
    spatial = x.shape[2:]
    if size is not None:
        return (size,) * len(spatial) if isinstance(size, (int, UOp)) else tuple(size)
    factors = [scale] * len(spatial) if isinstance(scale, (int, float)) else list(scale)
    return tuple(scaled_size(have, by) for have, by in zip(spatial, factors, strict=True))


def _antialiased(x: Tensor, sizes: Shape, mode: str, align_corners: bool) -> Tensor:
    """A product with a matrix of weights for each axis; filters widen where sizes shrink."""
    if mode not in ("bilinear", "bicubic"):
        raise ArgumentError(
            f"interpolate: antialias with mode {mode!r}", rule="it belongs to bilinear and bicubic"
        )
    for axis, new in enumerate(sizes, 2):
        weights = _filter(known(x.shape[axis]), known(new), mode, align_corners)  # (new, old)
        matrix = Tensor(weights.astype(np.float32), device=x.device).cast(x.dtype)
        x = x.movedim(axis, -1).matmul(matrix.transpose(0, 1)).movedim(-1, axis)
    return x


def _filter(old: int, new: int, mode: str, align_corners: bool) -> Any:
    step = (old - 1) / (new - 1) if align_corners and new > 1 else old / new
    half = 1.0 if mode == "bilinear" else 2.0
    reach = half * max(step, 1.0)
    rows = np.zeros((new, old))
    for index in range(new):
        center = step * (index + 0.5)
        low, high = max(int(center - reach + 0.5), 0), min(int(center + reach + 0.5), old)
        at = np.abs((np.arange(low, high) - center + 0.5) / max(step, 1.0))
        taps = np.clip(1 - at, 0, None) if mode == "bilinear" else _cubic(at)
        rows[index, low:high] = taps / taps.sum()
    return rows


def _cubic(t: Any, a: float = -0.5) -> Any:
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    far = (((t - 5) * t + 8) * t - 4) * a
    return np.where(t < 1, near, np.where(t < 2, far, 0.0))


def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """`interpolate`, under its older name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` from the nearest element."""
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Bilinear `interpolate` that keeps the corners."""
    return interpolate(input, size, scale_factor, "bilinear", True)


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(…, c r², h, w) to (…, c, h r, w r)."""
    r = upscale_factor
    *lead, channels, height, width = input.shape
    if known(channels) % (r * r):
        raise ShapeError(
            f"pixel_shuffle: {channels} channels for a factor of {r}",
            rule="the square of the factor divides the channels",
        )
    count = known(channels) // (r * r)
    apart = input.reshape((*lead, count, r, r, height, width))
    n = len(lead)
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return apart.permute(order).reshape((*lead, count, times(height, r), times(width, r)))


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(…, c, h r, w r) to (…, c r², h, w)."""
    r = downscale_factor
    *lead, channels, height, width = input.shape
    rows, columns = try_quotient(height, r), try_quotient(width, r)
    if rows is None or columns is None:
        raise ShapeError(
            f"pixel_unshuffle: {height} by {width} pixels for a factor of {r}",
            rule="the factor divides both",
            fix=multiple_fix(height, width),
        )
    apart = input.reshape((*lead, channels, rows, r, columns, r))
    n = len(lead)
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return apart.permute(order).reshape((*lead, times(channels, r * r), rows, columns))


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Channels of groups, interleaved: one of each group, then the next of each."""
    batch, channels, *rest = input.shape
    apart = input.reshape((batch, groups, known(channels) // groups, *rest))
    return apart.transpose(1, 2).reshape(input.shape)


native_channel_shuffle = channel_shuffle


def _listed(value: Any, rank: int = 2) -> tuple[Any, ...]:
    listed = (value,) if isinstance(value, (int, UOp)) else tuple(value)
    return listed * rank if len(listed) == 1 else listed


def unfold(
    input: Tensor, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> Tensor:
    """The patches of images (batch, channels, h, w) as columns (batch, taps, positions)."""
    x = input.unsqueeze(0) if input.ndim == 3 else input
    kernel, edges = _listed(kernel_size), _listed(padding)
    padded = x.pad((edges[1], edges[1], edges[0], edges[0]))
    taps = windows(padded, kernel, _listed(stride), _listed(dilation))
    batch, channels, rows, columns = taps.shape[:4]
    moved = taps.permute((0, 1, 4, 5, 2, 3))
    result = moved.reshape((batch, times(channels, *kernel), times(rows, columns)))
    return result.squeeze(0) if input.ndim == 3 else result


def fold(
    input: Tensor,
    output_size: Ints,
    kernel_size: Ints,
    dilation: Ints = 1,
    padding: Ints = 0,
    stride: Ints = 1,
) -> Tensor:
    """Columns of patches added up into images: the transpose of `unfold`."""
    x = input.unsqueeze(0) if input.ndim == 2 else input
    kernel, edges, steps, gaps = map(_listed, (kernel_size, padding, stride, dilation))
    sizes = _listed(output_size)
    full = [plus(size, 2 * edge) for size, edge in zip(sizes, edges, strict=True)]
    counts = [
        window_count(size, taps, step, gap)
        for size, gap, taps, step in zip(full, gaps, kernel, steps, strict=True)
    ]
    batch, channels = x.shape[0], known(x.shape[1]) // math.prod(kernel)
    result = (
        _scattered(x, [batch, channels, *full], (kernel, steps, gaps), counts)
        if all(isinstance(size, int) for size in (batch, *full))
        else _summed(x, [batch, channels, *full], Frame(kernel, steps, gaps, (0, 0)), counts)
    )
    box = [(edge, plus(size, edge)) for edge, size in zip(edges, sizes, strict=True)]
    image = result.shrink((None, None, *box))
    return image.squeeze(0) if input.ndim == 2 else image


def _scattered(x: Tensor, full: Any, frame: Any, counts: Any) -> Tensor:
    """Patches added up by the numbers of their pixels."""
    kernel, steps, gaps = frame
    batch, channels, *sizes = full
    grid = np.arange(math.prod(sizes)).reshape(sizes)
    taps_at = [
        (np.arange(count) * step)[None, :] + (np.arange(taps) * gap)[:, None]
        for count, step, taps, gap in zip(counts, steps, kernel, gaps, strict=True)
    ]  # (tap, position) for each axis
    positions = grid[taps_at[0][:, None, :, None], taps_at[1][None, :, None, :]].reshape(-1)
    values = x.reshape((batch * channels, -1))
    index = Tensor(positions, device=x.device).reshape((1, -1)).expand(values.shape)
    flat = Tensor.zeros(batch * channels, math.prod(sizes), dtype=x.dtype, device=x.device)
    return flat.scatter_add(1, index, values).reshape(full)


def _summed(x: Tensor, full: Any, frame: Frame, counts: Any) -> Tensor:
    """Patches of symbolic counts added up tap by tap."""
    taps = x.reshape((*full[:2], *frame.kernel, *counts)).permute((0, 1, 4, 5, 2, 3))
    return summed_windows(taps, full, frame)


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The points of an image, moved by matrices (batch, 2, 3) or (batch, 3, 4)."""
    spatial = [known(each) for each in size[2:]]
    axes = []
    for count in spatial:
        line = np.linspace(-1, 1, count) if count > 1 else np.zeros(count)
        axes.append(line if align_corners else line * (count - 1) / count)
    mesh = np.meshgrid(*axes, indexing="ij")
    points = np.stack([*mesh[::-1], np.ones_like(mesh[0])], -1).astype(np.float32)
    base = Tensor(points, device=theta.device).cast(theta.dtype).reshape((-1, len(spatial) + 1))
    moved = base.matmul(theta.transpose(1, 2))  # (batch, points, rank)
    return moved.reshape((int(size[0]), *spatial, len(spatial)))
