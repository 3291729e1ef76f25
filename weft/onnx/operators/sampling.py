"""Values at points of images: grids, regions of interest."""

from __future__ import annotations

import math
from typing import Any

from weft.ir.dtypes import dtypes
from weft.ir.sizes import at_least, minus
from weft.onnx.operators.movement import sizes_of
from weft.onnx.table import op
from weft.tensor.tensor import Tensor


@op("AffineGrid", host=(1,))
def affine_grid(call: Any, theta: Tensor, size: Any) -> Tensor:
    sizes = sizes_of(size)
    spatial = sizes[2:]
    axes = []
    for number, extent in enumerate(spatial):
        index = Tensor.arange(extent, dtype=theta.dtype, device=theta.device)
        if call.get("align_corners", 0):
            line = index * 2 / at_least(minus(extent, 1), 1) - 1.0
        else:
            line = (index * 2 + 1) / extent - 1.0
        shape = [1] * len(spatial)
        shape[number] = extent
        axes.append(line.reshape(shape).expand(spatial))
    ones = Tensor.ones(*spatial, dtype=theta.dtype, device=theta.device)
    points = Tensor.stack(*axes[::-1], ones, dim=-1).reshape(-1, len(spatial) + 1)
    grid = points.unsqueeze(0).matmul(theta.transpose(1, 2))
    return grid.reshape(sizes[0], *spatial, len(spatial))


def _unscaled(x: Tensor, size: int, is_aligned: bool) -> Tensor:
    """From -1 … 1 to positions of pixels."""
    return (x + 1) / 2 * (size - 1) if is_aligned else ((x + 1) * size - 1) / 2


def _reflected(x: Tensor, size: int, is_aligned: bool) -> Tensor:
    low, high = (0.0, size - 1.0) if is_aligned else (-0.5, size - 0.5)
    span = high - low
    if span == 0:
        return x * 0
    distance = (x - low).abs() % (2 * span)
    return (distance > span).where(2 * span - distance, distance) + low


class _Sampler:
    """An image (n, channels, spatial…) that is read at positions (n, points)."""

    def __init__(self, call: Any, x: Tensor) -> None:
        self.x, self.sizes = x, list(x.shape[2:])
        self.padding = call.get("padding_mode", "zeros")
        self.is_aligned = bool(call.get("align_corners", 0))
        self.flat = x.reshape(x.shape[0], x.shape[1], -1)

    def at(self, positions: list[Tensor]) -> Tensor:
        """The pixels at whole positions: (n, channels, points)."""
        number: Any = 0
        inside: Any = None
        for position, size in zip(positions, self.sizes, strict=True):
            if self.padding == "reflection":
                position = _reflected(position, size, self.is_aligned)
            if self.padding == "zeros":
                own = (position >= 0) & (position <= size - 1)
                inside = own if inside is None else inside & own
            number = number * size + position.clamp(0, size - 1)
        n, channels = self.x.shape[:2]
        index = number.round().cast(dtypes.int64).unsqueeze(1)
        pixels = self.flat.gather(2, index.expand(n, channels, index.shape[2]))
        return pixels if inside is None else inside.unsqueeze(1).where(pixels, 0)

    def weighed(self, positions: list[Tensor], taps: list[int], weight: Any) -> Tensor:
        """The sum over taps around each position, along all axes."""
        result: Any = 0
        rank = len(positions)
        floors = [position.floor() for position in positions]
        for code in range(len(taps) ** rank):
            chosen = [taps[code // len(taps) ** axis % len(taps)] for axis in range(rank)]
            corners = [floor + tap for floor, tap in zip(floors, chosen, strict=True)]
            share: Any = 1
            for position, corner in zip(positions, corners, strict=True):
                share = share * weight(position - corner)
            result = result + share.unsqueeze(1) * self.at(corners)
        return result


def _cubic(distance: Tensor) -> Tensor:
    a = -0.75
    d = distance.abs()
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return (d <= 1).where(near, (d < 2).where(far, 0))


@op("GridSample")
def grid_sample(call: Any, x: Tensor, grid: Tensor) -> Tensor:
    sampler = _Sampler(call, x)
    rank = x.ndim - 2
    points = grid.reshape(grid.shape[0], -1, rank)
    positions = [
        _unscaled(points[..., rank - 1 - axis], sampler.sizes[axis], sampler.is_aligned)
        for axis in range(rank)
    ]
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(
        call.get("mode", "linear"), call.get("mode", "linear")
    )
    if mode != "cubic":
        positions = [
            _kept(position, size, sampler)
            for position, size in zip(positions, sampler.sizes, strict=True)
        ]
    if mode == "nearest":
        result = sampler.at([position.round() for position in positions])
    elif mode == "linear":
        result = sampler.weighed(positions, [0, 1], lambda d: 1 - d.abs())
    else:
        result = sampler.weighed(positions, [-1, 0, 1, 2], _cubic)
    return result.reshape(x.shape[0], x.shape[1], *grid.shape[1:-1]).cast(x.dtype)


def _kept(position: Tensor, size: int, sampler: _Sampler) -> Tensor:
    """Positions inside of the image, where the padding says so."""
    if sampler.padding == "border":
        return position.clamp(0, size - 1)
    if sampler.padding == "reflection":
        return _reflected(position, size, sampler.is_aligned).clamp(0, size - 1)
    return position


@op("RoiAlign")
def roi_align(call: Any, x: Tensor, rois: Tensor, batch: Tensor) -> Tensor:
    """The average, or greatest, of points in the bins of regions."""
    is_half = call.get("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    is_half = is_half and call.version >= 16
    height, width = call.get("output_height", 1), call.get("output_width", 1)
    scale, shift = call.get("spatial_scale", 1.0), 0.5 if is_half else 0.0
    box = rois * scale - shift  # (regions, 4): x1, y1, x2, y2
    spans = [box[:, 2] - box[:, 0], box[:, 3] - box[:, 1]]
    spans = spans if is_half else [span.maximum(1.0) for span in spans]
    ratio = call.get("sampling_ratio", 0)
    if ratio <= 0:
        return _by_own_counts(call, x, box, spans, batch, height, width)
    rows = _lines(box[:, 1], spans[1], height, ratio)
    columns = _lines(box[:, 0], spans[0], width, ratio)
    return _pooled(call, x[batch.cast(dtypes.int64)], rows, columns, height, width)


def _by_own_counts(
    call: Any, x: Tensor, box: Tensor, spans: list[Tensor], batch: Tensor, height: int, width: int
) -> Tensor:
    """As many points in a bin as it has pixels: each region has its own number."""
    sizes = [call.run.host(span) for span in (spans[1], spans[0])]
    results = []
    for number in range(box.shape[0]):
        own = slice(number, number + 1)
        counts = [
            max(math.ceil(float(size[number]) / bins), 1)
            for size, bins in zip(sizes, (height, width), strict=True)
        ]
        rows = _lines(box[own, 1], spans[1][own], height, counts[0])
        columns = _lines(box[own, 0], spans[0][own], width, counts[1])
        image = x[batch[own].cast(dtypes.int64)]
        results.append(_pooled(call, image, rows, columns, height, width))
    return results[0].cat(*results[1:]) if len(results) > 1 else results[0]


def _lines(start: Tensor, span: Tensor, bins: int, count: int) -> Tensor:
    """Positions of points along an axis: (regions, bins · count)."""
    step = span.unsqueeze(1) / bins
    index = Tensor.arange(bins * count, dtype=span.dtype, device=span.device)
    return start.unsqueeze(1) + step * ((index + 0.5) / count).unsqueeze(0)


def _pooled(
    call: Any, x: Tensor, rows: Tensor, columns: Tensor, height: int, width: int
) -> Tensor:
    regions, channels, size_h, size_w = x.shape
    down, across = rows.shape[1], columns.shape[1]
    flat = x.reshape(regions, channels, size_h * size_w)

    def parts(line: Tensor, size: int) -> list[tuple[Tensor, Tensor]]:
        inside = (line >= -1) & (line <= size)
        kept = line.clamp(0, size - 1)
        low = kept.floor().clamp(0, size - 1)
        high = (low + 1).clamp(0, size - 1)
        share = kept - low
        return [(low, inside.where(1 - share, 0)), (high, inside.where(share, 0))]

    values = []
    for row, row_share in parts(rows, size_h):
        for column, column_share in parts(columns, size_w):
            number = row.unsqueeze(2) * size_w + column.unsqueeze(1)
            index = number.cast(dtypes.int64).reshape(regions, 1, down * across)
            pixels = flat.gather(2, index.expand(regions, channels, down * across))
            share = (row_share.unsqueeze(2) * column_share.unsqueeze(1)).reshape(regions, 1, -1)
            values.append(pixels * share)
    shape = (regions, channels, height, down // height, width, across // width)
    if call.get("mode", "avg") == "max":
        greatest = values[0].maximum(values[1]).maximum(values[2].maximum(values[3]))
        return greatest.reshape(shape).max((3, 5))
    total = values[0] + values[1] + values[2] + values[3]
    return total.reshape(shape).mean((3, 5))


@op("MaxRoiPool", host=(1,))
def max_roi_pool(call: Any, x: Tensor, rois: Any) -> Tensor:
    """The greatest pixel of each bin; regions are whole pixels, which the host reads."""
    height, width = call.get("pooled_shape")
    scale = call.get("spatial_scale", 1.0)
    results = []
    for batch, *corners in rois.tolist():
        left, top, right, bottom = (math.floor(each * scale + 0.5) for each in corners)
        tall, wide = max(bottom - top + 1, 1) / height, max(right - left + 1, 1) / width
        bins = []
        for row in range(height):
            for column in range(width):
                rows = _span(top, tall, row, x.shape[2])
                columns = _span(left, wide, column, x.shape[3])
                bins.append(_greatest(x[int(batch)], rows, columns))
        results.append(Tensor.stack(*bins, dim=-1).reshape(x.shape[1], height, width))
    return Tensor.stack(*results)


def _span(start: int, step: float, number: int, size: int) -> tuple[int, int]:
    low = start + math.floor(number * step)
    high = start + math.ceil((number + 1) * step)
    return min(max(low, 0), size), min(max(high, 0), size)


def _greatest(image: Tensor, rows: tuple[int, int], columns: tuple[int, int]) -> Tensor:
    if rows[0] >= rows[1] or columns[0] >= columns[1]:
        return Tensor.zeros(image.shape[0], dtype=image.dtype, device=image.device)
    return image[:, rows[0] : rows[1], columns[0] : columns[1]].max((1, 2))
