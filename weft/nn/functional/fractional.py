"""Fractional max pools: windows that begin at random steps, so that sizes shrink by any ratio.

Steps are those of Graham, "Fractional max-pooling" (2014): each window of a sequence begins
between one floor and one ceiling of the ratio after the one before, by one random number for each
channel and axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.support.errors import ArgumentError, ShapeError
from weft.tensor.checks import known
from weft.tensor.tensor import Tensor

Ints = int | Sequence[int]


def _listed(value: Any, rank: int) -> tuple[Any, ...]:
    return (value,) * rank if isinstance(value, (int, float)) else tuple(value)


def _sizes(name: str, x: Tensor, kernel: Any, size: Any, ratio: Any, rank: int) -> tuple[int, ...]:
    if (size is None) == (ratio is None):
        raise ArgumentError(
            f"{name}: expected output_size or output_ratio", rule="exactly one of them is given"
        )
    have = [known(each) for each in x.shape[-rank:]]
    if size is None:
        ratios = _listed(ratio, rank)
        if not all(0 < each < 1 for each in ratios):
            raise ArgumentError(f"{name}: output_ratio is {ratio}", rule="it is between 0 and 1")
        sizes = [int(old * share) for old, share in zip(have, ratios, strict=True)]
    else:
        sizes = list(_listed(size, rank))
    for old, new, taps in zip(have, sizes, kernel, strict=True):
        if new + taps - 1 > old or new < 1:
            raise ShapeError(
                f"{name}: {new} windows of {taps} in an axis of {old}",
                facts=[("input", x.shape)],
                rule="windows begin at different elements: size + kernel - 1 <= input",
            )
    return tuple(sizes)


def _starts(sample: Tensor, have: int, size: int, taps: int) -> Tensor:
    """Where the windows of an axis begin: (batch, channels, size), from one number each."""
    if size == 1:
        return (sample.unsqueeze(2) * 0 + (have - taps)).cast("int32")
    step = (have - taps) / (size - 1)
    numbers = Tensor.arange(size, device=sample.device)
    first = (sample * step).floor().unsqueeze(2)
    found = ((numbers + sample.unsqueeze(2)) * step).floor() - first
    return (numbers == size - 1).where(have - taps, found).cast("int32")


def _pooled(
    rank: int,
    name: str,
    input: Tensor,
    kernel_size: Ints,
    output_size: Any,
    output_ratio: Any,
    return_indices: bool,
    samples: Tensor | None,
) -> Any:
    if input.ndim not in (rank + 1, rank + 2):
        raise ShapeError(
            f"{name}: an input with {input.ndim} axes",
            facts=[("input", input.shape)],
            rule=f"the input is (batch, channels) or (channels), and {rank} spatial axes",
        )
    if input.ndim == rank + 1:
        found = _pooled(
            rank, name, input.unsqueeze(0), kernel_size, output_size, output_ratio, True, samples
        )
        values, indices = (each.squeeze(0) for each in found)
        return (values, indices) if return_indices else values
    kernel = _listed(kernel_size, rank)
    sizes = _sizes(name, input, kernel, output_size, output_ratio, rank)
    batch, channels, *have = (known(each) for each in input.shape)
    if samples is None:
        samples = Tensor.rand(batch, channels, rank, dtype=input.dtype, device=input.device)
    # PyTorch's first number is that of the last of two axes, and of the first of three.
    order = (1, 0) if rank == 2 else (0, 1, 2)
    flat = Tensor.zeros(1, 1, *[1] * (2 * rank), dtype="int32", device=input.device)
    for axis in range(rank):
        begin = _starts(samples[..., order[axis]].float(), have[axis], sizes[axis], kernel[axis])
        taps = Tensor.arange(kernel[axis], dtype="int32", device=input.device)
        shape = [1] * (2 * rank)
        shape[axis], shape[rank + axis] = sizes[axis], kernel[axis]
        found = (begin.unsqueeze(3) + taps).reshape(batch, channels, *shape)
        flat = flat * have[axis] + found
    flat = flat.reshape(batch, channels, *sizes, -1)  # (…, taps)
    line = input.flatten(2)
    taken = line.detach().gather(2, flat.flatten(2)).reshape(flat.shape)
    first = taken.argmax(-1, keepdim=True)
    indices = flat.gather(-1, first).squeeze(-1).cast("int64")
    values = line.gather(2, indices.flatten(2)).reshape(indices.shape)
    return (values, indices) if return_indices else values


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The greatest of windows over two axes that begin at random steps."""
    return _pooled(
        2, "fractional_max_pool2d", input, kernel_size, output_size, output_ratio, return_indices,
        _random_samples,
    )  # fmt: skip


def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The greatest of windows over three axes that begin at random steps."""
    return _pooled(
        3, "fractional_max_pool3d", input, kernel_size, output_size, output_ratio, return_indices,
        _random_samples,
    )  # fmt: skip


def fractional_max_pool2d_with_indices(*args: Any, **kwargs: Any) -> Any:
    """`fractional_max_pool2d`, and where in the flat spatial axes each value was."""
    return fractional_max_pool2d(*args, **{**kwargs, "return_indices": True})


def fractional_max_pool3d_with_indices(*args: Any, **kwargs: Any) -> Any:
    """`fractional_max_pool3d`, and where in the flat spatial axes each value was."""
    return fractional_max_pool3d(*args, **{**kwargs, "return_indices": True})
