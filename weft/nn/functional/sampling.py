"""`grid_sample`: images read at points between their pixels."""

from __future__ import annotations

import itertools
from typing import Any

from weft.support.errors import ArgumentError
from weft.tensor.tensor import Tensor

_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Values of (batch, channels, [depth,] h, w) at points from -1 to 1 of (batch, …, rank).

    A point is (x, y) or (x, y, z), the last axis first.
    """
    if mode not in _MODES or padding_mode not in _PADDINGS:
        raise ArgumentError(
            f"grid_sample: mode {mode!r}, padding_mode {padding_mode!r}",
            rule=f"modes are {', '.join(_MODES)}; paddings are {', '.join(_PADDINGS)}",
        )
    rank = input.ndim - 2
    sizes = [int(size) for size in input.shape[2:]]
    corners = bool(align_corners)
    points = [
        _unscaled(grid[..., rank - 1 - axis], size, corners) for axis, size in enumerate(sizes)
    ]
    if mode == "bicubic":
        return _bicubic(input, points, sizes, padding_mode, corners)
    pairs = zip(points, sizes, strict=True)
    # Each point is read for every corner around it, so it is computed once.
    points = [_padded(point, size, padding_mode, corners).contiguous() for point, size in pairs]
    if mode == "nearest":
        return _at(input, [point.round() for point in points], sizes)
    total: Any = 0.0
    lows = [point.detach().floor() for point in points]
    for corner in itertools.product((0, 1), repeat=rank):
        weight: Any = 1.0
        for axis, side in enumerate(corner):
            part = points[axis] - lows[axis]
            weight = weight * (part if side else 1 - part)
        chosen = [low + side for low, side in zip(lows, corner, strict=True)]
        total = total + _at(input, chosen, sizes) * weight.unsqueeze(1)
    result: Tensor = total
    return result


def _unscaled(x: Tensor, size: int, corners: bool) -> Tensor:
    """From -1 … 1 to numbers of pixels."""
    return (x + 1) * ((size - 1) / 2) if corners else ((x + 1) * size - 1) / 2


def _padded(x: Tensor, size: int, padding: str, corners: bool) -> Tensor:
    if padding == "border":
        return _clipped(x, size)
    if padding == "reflection":
        low, high = (0.0, size - 1.0) if corners else (-0.5, size - 0.5)
        return _clipped(_reflected(x, low, high), size)
    return x


def _clipped(x: Tensor, size: int) -> Tensor:
    """Inside of the image; what is at its edge or beyond has no slope, as in PyTorch."""
    inside = (x > 0) & (x < size - 1)
    return inside.where(x, x.detach().clamp(0, size - 1))


def _reflected(x: Tensor, low: float, high: float) -> Tensor:
    span = high - low
    if span <= 0:
        return x * 0.0
    away = (x - low).abs()
    periods = (away.detach() / span).floor()
    rest = away - periods * span
    is_even = (periods / 2).frac() == 0
    return is_even.where(rest + low, span - rest + low)


def _at(x: Tensor, numbers: list[Tensor], sizes: list[int]) -> Tensor:
    """Pixels (batch, channels, points…) at whole numbers; 0 outside."""
    inside: Any = True
    address: Any = 0
    for number, size in zip(numbers, sizes, strict=True):
        inside = (number >= 0) & (number <= size - 1) & inside
        address = address * size + number.clamp(0, size - 1).cast("int32")
    batch, channels = int(x.shape[0]), int(x.shape[1])
    points = address.shape[1:]
    index = address.reshape((batch, 1, -1)).expand((batch, channels, -1))
    picked = x.flatten(2).gather(2, index).reshape((batch, channels, *points))
    return inside.unsqueeze(1).where(picked, 0.0)  # type: ignore[no-any-return]


def _bicubic(
    x: Tensor, points: list[Tensor], sizes: list[int], padding: str, corners: bool
) -> Tensor:
    lows = [point.detach().floor() for point in points]
    weights = [_taps(point - low) for point, low in zip(points, lows, strict=True)]
    total: Any = 0.0
    for i, j in itertools.product(range(4), repeat=2):
        chosen = []
        for low, shift, size in zip(lows, (i, j), sizes, strict=True):
            number = _padded(low + (shift - 1), size, padding, corners)
            chosen.append(number.round())
        total = total + _at(x, chosen, sizes) * (weights[0][i] * weights[1][j]).unsqueeze(1)
    result: Tensor = total
    return result


def _taps(t: Tensor, a: float = -0.75) -> list[Tensor]:
    def near(d: Tensor) -> Tensor:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: Tensor) -> Tensor:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]
