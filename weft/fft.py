"""Fourier transforms with the names and arguments of torch.fft: complex numbers in and out.

The methods of `Tensor` with these names compute the same on pairs (…, 2); here pairs are complex
numbers. A transform runs in the precision of its input, halves in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.ir.dtypes import dtypes
from weft.support.errors import ArgumentError
from weft.tensor.complexes.parts import view_as_complex, view_as_real
from weft.tensor.methods import fourier
from weft.tensor.tensor import Tensor

Sizes = Sequence[int] | None
Axes = Sequence[int] | int | None


def _tensor(x: Tensor | Any) -> Tensor:
    return x if isinstance(x, Tensor) else Tensor(x)


def _pairs(input: Any) -> Tensor:
    """Complex numbers as pairs; real ones have imaginary parts of 0."""
    x = _tensor(input)
    if x.dtype.is_complex:
        return view_as_real(x)
    real: Tensor = x if x.is_floating_point() else x.float()
    return real.stack(real.zeros_like(), dim=-1)


def _real(name: str, input: Any) -> Tensor:
    x = _tensor(input)
    if x.dtype.is_complex:
        raise ArgumentError(
            f"{name}: expected real numbers, got {x.dtype.name}",
            rule=f"{name} transforms real numbers",
            fix=f"use {name.replace('r', '').replace('ih', 'i')}, or take the real part: x.real",
        )
    return x


def _axes(name: str, x: Tensor, s: Sizes, dim: Axes, last: int | None = None) -> dict[str, Any]:
    """The axes and lengths of a transform over several; `last` are the axes without a word."""
    if dim is None:
        count = len(s) if s is not None else last if last is not None else x.ndim
        dim = tuple(range(x.ndim - count, x.ndim))
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if len({axis % max(x.ndim, 1) for axis in dims}) != len(dims):
        raise ArgumentError(f"{name}: an axis is named twice in dim={dims}")
    sizes = [None if size == -1 else size for size in s] if s is not None else [None] * len(dims)
    if len(sizes) != len(dims):
        raise ArgumentError(
            f"{name}: {len(sizes)} lengths for {len(dims)} axes",
            rule="s has a length for each axis of dim",
        )
    return {"s": sizes, "dim": dims}


def _complex_from(pairs: Tensor) -> Tensor:
    return view_as_complex(pairs)


def fft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return X[k] = Σ x[j] e ** (-2πi j k / n).

    `n` cuts or pads the axis first. `norm` divides: "backward" nothing here and by n in `ifft`,
    "ortho" both by √n, "forward" here by n.

    >>> fft(Tensor([1.0, 0.0])).tolist()
    [(1+0j), (1+0j)]
    """
    return _complex_from(fourier.fft(_pairs(input), n, dim, norm))


def ifft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the inverse of `fft`.

    >>> ifft(Tensor([1.0, 1.0])).tolist()
    [(1+0j), 0j]
    """
    return _complex_from(fourier.ifft(_pairs(input), n, dim, norm))


def rfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the first n // 2 + 1 numbers of the transform of real numbers.

    >>> rfft(Tensor([1.0, 2.0])).tolist()
    [(3+0j), (-1+0j)]
    """
    return _complex_from(fourier.rfft(_real("rfft", input), n, dim, norm))


def irfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the n real numbers whose `rfft` this is.

    >>> irfft(Tensor([3 + 0j, -1 + 0j])).tolist()
    [1.0, 2.0]
    """
    return fourier.irfft(_pairs(input), n, dim, norm)


_OPPOSITE = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def hfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the real transform of numbers whose other half is their conjugate.

    >>> hfft(Tensor([1 + 0j, 1 + 0j])).tolist()
    [2.0, 0.0]
    """
    conjugate = _pairs(input).view_as_complex().conj()
    return irfft(conjugate, n, dim, _OPPOSITE.get(norm, norm))


def ihfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the inverse of `hfft`.

    >>> ihfft(Tensor([2.0, 0.0])).tolist()
    [(1-0j), (1-0j)]
    """
    return rfft(_real("ihfft", input), n, dim, _OPPOSITE.get(norm, norm)).conj()


def fftn(input: Any, s: Sizes = None, dim: Axes = None, norm: str | None = None) -> Tensor:
    """Return the transform along several axes, all of them without `dim`.

    >>> fftn(Tensor([[1.0, 0.0]])).tolist()
    [[(1+0j), (1+0j)]]
    """
    return _several("fftn", fourier.fft2, input, s, dim, norm)


def ifftn(input: Any, s: Sizes = None, dim: Axes = None, norm: str | None = None) -> Tensor:
    """Return the inverse of `fftn`.

    >>> ifftn(Tensor([[1.0, 1.0]])).tolist()
    [[(1+0j), 0j]]
    """
    return _several("ifftn", fourier.ifft2, input, s, dim, norm)


def _several(
    name: str, transform: Callable[..., Tensor], input: Any, s: Sizes, dim: Axes, norm: str | None
) -> Tensor:
    pairs = _pairs(input)
    where = _axes(name, pairs[..., 0], s, dim)
    return _complex_from(transform(pairs, norm=norm, **where) if where["dim"] else pairs)


def rfftn(input: Any, s: Sizes = None, dim: Axes = None, norm: str | None = None) -> Tensor:
    """Return the transform of real numbers along several axes; the last has half of its numbers.

    >>> rfftn(Tensor([[1.0, 2.0]])).tolist()
    [[(3+0j), (-1+0j)]]
    """
    x = _real("rfftn", input)
    return _complex_from(fourier.rfft2(x, norm=norm, **_axes("rfftn", x, s, dim)))


def irfftn(input: Any, s: Sizes = None, dim: Axes = None, norm: str | None = None) -> Tensor:
    """Return the real numbers whose `rfftn` this is.

    >>> irfftn(Tensor([[3 + 0j, -1 + 0j]])).tolist()
    [[1.0, 2.0]]
    """
    pairs = _pairs(input)
    return fourier.irfft2(pairs, norm=norm, **_axes("irfftn", pairs[..., 0], s, dim))


def hfftn(input: Any, s: Sizes = None, dim: Axes = None, norm: str | None = None) -> Tensor:
    """Return the real transform of numbers whose other half, along the last axis, is conjugate.

    >>> hfftn(Tensor([[1 + 0j, 1 + 0j]])).tolist()
    [[2.0, 0.0]]
    """
    conjugate = _pairs(input).view_as_complex().conj()
    return irfftn(conjugate, s, dim, _OPPOSITE.get(norm, norm))


def ihfftn(input: Any, s: Sizes = None, dim: Axes = None, norm: str | None = None) -> Tensor:
    """Return the inverse of `hfftn`.

    >>> ihfftn(Tensor([[2.0, 0.0]])).tolist()
    [[(1-0j), (1-0j)]]
    """
    return rfftn(_real("ihfftn", input), s, dim, _OPPOSITE.get(norm, norm)).conj()


def fft2(input: Any, s: Sizes = None, dim: Axes = (-2, -1), norm: str | None = None) -> Tensor:
    """Return the transform along two axes, the last ones without `dim`.

    >>> fft2(Tensor([[1.0, 0.0]])).tolist()
    [[(1+0j), (1+0j)]]
    """
    return fftn(input, s, dim, norm)


def ifft2(input: Any, s: Sizes = None, dim: Axes = (-2, -1), norm: str | None = None) -> Tensor:
    """Return the inverse of `fft2`.

    >>> ifft2(Tensor([[1.0, 1.0]])).tolist()
    [[(1+0j), 0j]]
    """
    return ifftn(input, s, dim, norm)


def rfft2(input: Any, s: Sizes = None, dim: Axes = (-2, -1), norm: str | None = None) -> Tensor:
    """Return `rfftn` along two axes.

    >>> rfft2(Tensor([[1.0, 2.0]])).tolist()
    [[(3+0j), (-1+0j)]]
    """
    return rfftn(input, s, dim, norm)


def irfft2(input: Any, s: Sizes = None, dim: Axes = (-2, -1), norm: str | None = None) -> Tensor:
    """Return `irfftn` along two axes.

    >>> irfft2(Tensor([[3 + 0j, -1 + 0j]])).tolist()
    [[1.0, 2.0]]
    """
    return irfftn(input, s, dim, norm)


def hfft2(input: Any, s: Sizes = None, dim: Axes = (-2, -1), norm: str | None = None) -> Tensor:
    """Return `hfftn` along two axes.

    >>> hfft2(Tensor([[1 + 0j, 1 + 0j]])).tolist()
    [[2.0, 0.0]]
    """
    return hfftn(input, s, dim, norm)


def ihfft2(input: Any, s: Sizes = None, dim: Axes = (-2, -1), norm: str | None = None) -> Tensor:
    """Return `ihfftn` along two axes.

    >>> ihfft2(Tensor([[2.0, 0.0]])).tolist()
    [[(1-0j), (1-0j)]]
    """
    return ihfftn(input, s, dim, norm)


def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """Return the frequencies of `fft` for n numbers that are d apart.

    >>> fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    kind = dtype or dtypes.default_float
    numbers = Tensor.arange(n, device=device)
    signed = (numbers < (n + 1) // 2).where(numbers, numbers - n)
    return signed.cast(kind) * (1.0 / (n * d))


def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """Return the frequencies of `rfft` for n numbers that are d apart.

    >>> rfftfreq(4).tolist()
    [0.0, 0.25, 0.5]
    """
    numbers = Tensor.arange(n // 2 + 1, device=device)
    return numbers.cast(dtype or dtypes.default_float) * (1.0 / (n * d))


def fftshift(input: Tensor, dim: Axes = None) -> Tensor:
    """Move the zero frequency to the middle of each axis.

    >>> fftshift(Tensor([0, 1, -2, -1])).tolist()
    [-2, -1, 0, 1]
    """
    return _shifted(input, dim, 0)


def ifftshift(input: Tensor, dim: Axes = None) -> Tensor:
    """Undo `fftshift`.

    >>> ifftshift(Tensor([-2, -1, 0, 1])).tolist()
    [0, 1, -2, -1]
    """
    return _shifted(input, dim, 1)


def _shifted(input: Tensor, dim: Axes, extra: int) -> Tensor:
    axes = range(input.ndim) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    shifts = tuple((int(input.shape[axis]) + extra) // 2 for axis in axes)
    return input.roll(shifts, tuple(axes)) if shifts else input
