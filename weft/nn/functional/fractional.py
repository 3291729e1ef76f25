"""Max pools whose windows start at random steps, so that the output has any size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft.nn.functional.pooling import Ints, listed, require_spatial
from weft.support.errors import ArgumentError, ShapeError
from weft.tensor.checks import known
from weft.tensor.tensor import Tensor


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The greatest element of each window, with windows at random steps along two axes."""
    return _pool(2, input, kernel_size, output_size, output_ratio, return_indices, _random_samples)


def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The greatest element of each window, with windows at random steps along three axes."""
    return _pool(3, input, kernel_size, output_size, output_ratio, return_indices, _random_samples)


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """`fractional_max_pool2d` with the indices of what it chose."""
    return _pool(2, input, kernel_size, output_size, output_ratio, True, _random_samples)


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """`fractional_max_pool3d` with the indices of what it chose."""
    return _pool(3, input, kernel_size, output_size, output_ratio, True, _random_samples)


def _pool(
    rank: int,
    input: Tensor,
    kernel_size: Ints,
    output_size: Any,
    output_ratio: Any,
    return_indices: bool,
    samples: Tensor | None,
) -> Any:
    name = f"fractional_max_pool{rank}d"
    require_spatial(name, input, rank)
    sizes = [known(size) for size in input.shape[-rank:]]
    kernel = listed(kernel_size, rank)
    wanted = _output_size(name, sizes, output_size, output_ratio)
    _require_room(name, sizes, kernel, wanted)
    x = input if input.ndim == rank + 2 else input.unsqueeze(0)
    batch, channels = known(x.shape[0]), known(x.shape[1])
    if samples is None:
        samples = Tensor.rand(batch, channels, rank, device=x.device)
    # PyTorch has the sample of the last axis first, of images.
    order = range(rank) if rank == 3 else (1, 0)
    windows, numbers = x, samples.new_zeros((1,) * x.ndim, dtype="int32")
    for axis, column in enumerate(order):
        starts = _starts(samples[:, :, column], sizes[axis], wanted[axis], kernel[axis])
        at = starts.unsqueeze(3) + Tensor.arange(kernel[axis], device=x.device)
        flat = at.reshape((batch, channels, -1))
        shape = [batch, channels, *[1] * rank]
        shape[2 + axis] = wanted[axis] * kernel[axis]
        whole = list(windows.shape)
        whole[2 + axis] = shape[2 + axis]
        windows = windows.gather(2 + axis, flat.reshape(shape).expand(whole))
        numbers = numbers * sizes[axis] + flat.reshape(shape)
    split = [size for pair in zip(wanted, kernel, strict=True) for size in pair]
    outer, inner = range(2, 2 + 2 * rank, 2), range(3, 3 + 2 * rank, 2)
    numbers = numbers.expand(windows.shape)
    parts = [
        each.reshape((batch, channels, *split)).permute((0, 1, *outer, *inner)).flatten(2 + rank)
        for each in (windows, numbers)
    ]
    chosen = parts[0].argmax(-1, keepdim=True)
    found = [each.gather(-1, chosen).squeeze(-1) for each in parts]
    found = found if input.ndim == rank + 2 else [each.squeeze(0) for each in found]
    return (found[0], found[1].long()) if return_indices else found[0]


def _output_size(name: str, sizes: list[int], size: Any, ratio: Any) -> tuple[int, ...]:
    if (size is None) == (ratio is None):
        raise ArgumentError(
            f"{name}: expected output_size or output_ratio",
            rule="one of them says how large the output is",
        )
    if size is not None:
        return listed(size, len(sizes))
    ratios = [ratio] * len(sizes) if isinstance(ratio, (int, float)) else list(ratio)
    return tuple(math.floor(n * each) for n, each in zip(sizes, ratios, strict=True))


def _require_room(
    name: str, sizes: list[int], kernel: tuple[int, ...], wanted: tuple[int, ...]
) -> None:
    for size, width, count in zip(sizes, kernel, wanted, strict=True):
        if count < 1 or count + width - 1 > size:
            raise ShapeError(
                f"{name}: {count} windows of {width} in {size} elements",
                rule="output_size + kernel_size - 1 is at most the size of the axis",
            )


def _starts(sample: Tensor, size: int, count: int, width: int) -> Tensor:
    """Where the windows (batch, channels, count) start; the last ends at the end."""
    last = size - width
    if count == 1:
        return sample.unsqueeze(-1).zeros_like().int() + last
    step = last / (count - 1)
    number = Tensor.arange(count, device=sample.device)
    wide = sample.unsqueeze(-1)
    starts = ((wide + number) * step).int() - (wide * step).int()
    return (number == count - 1).where(last, starts)
