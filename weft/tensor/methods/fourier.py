"""Fourier transforms of any length, with complex numbers as pairs.

A complex tensor has a last axis of size 2, the real and the imaginary part; `dim` counts the axes
before it. So a transform of (…, n, 2) along -1 runs over n, and `rfft` of real (…, n) gives
(…, n // 2 + 1, 2).

A length is split into factors of at most 32, each a product with a small matrix, with a rotation
between them. A prime above that is a convolution with a chirp (Bluestein), of a length that is a
power of 2. Tables are computed on the host in float64 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from weft.ir.dtypes import DType, dtypes
from weft.support.bounded_cache import BoundedCache
from weft.support.errors import ArgumentError, ShapeError
from weft.tensor.checks import axis_of, known
from weft.tensor.methods.unary import as_float
from weft.tensor.small_floats import widened

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

LARGEST_FACTOR: Final = 32
_NORMS: Final = ("backward", "ortho", "forward")
Sizes = int | Sequence[int] | None


class _Tables(NamedTuple):
    """Constants of a transform on one device, in one dtype; `sign` is -1 forward, 1 backward."""

    sign: int
    dtype: DType
    device: str

    def twiddles(self, rows: int, columns: int) -> Tensor:
        """e ** (±2πi j k / (rows columns)) for each row j and column k, as pairs."""
        (table,) = self._made(_twiddles, rows, columns)
        return table

    def matrix(self, size: int, is_real: bool) -> Tensor:
        """The transform of `size` numbers as a real matrix (inputs, outputs) on flat pairs."""
        (table,) = self._made(_matrix, size, is_real)
        return table

    def chirp(self, size: int, length: int) -> tuple[Tensor, ...]:
        """The chirp e ** (±πi j² / size), and the spectrum of its conjugate over `length`."""
        return self._made(_chirp, size, length)

    def _made(self, make: Callable[..., tuple[Any, ...]], *sizes: int) -> tuple[Tensor, ...]:
        from weft.tensor.tensor import Tensor

        key = (self, make, *sizes)
        found = _KNOWN.get(key)
        if found is None:
            kind = np.float64 if self.dtype is dtypes.float64 else np.float32
            found = _KNOWN[key] = tuple(
                Tensor(table.astype(kind), device=self.device, requires_grad=False)
                for table in make(self.sign, *sizes)
            )
        return found


# Tables are as long as the signals, so their bytes are bounded.
_KNOWN: Final[BoundedCache[Any, tuple[Any, ...]]] = BoundedCache(
    16 << 20, size_of=lambda tables: sum(table.nbytes() for table in tables)
)


def _twiddles(sign: int, rows: int, columns: int) -> tuple[Any, ...]:
    numbers = np.outer(range(rows), range(columns))
    return (_pairs(_roots(numbers, rows * columns, sign)),)


def _matrix(sign: int, size: int, is_real: bool) -> tuple[Any, ...]:
    z = _roots(np.outer(range(size), range(size)), size, sign)  # (input, output)
    of_real = _pairs(z).reshape(size, 2 * size)
    of_imaginary = _pairs(z * 1j).reshape(size, 2 * size)
    both = np.stack([of_real, of_imaginary], 1).reshape(2 * size, 2 * size)
    return (of_real if is_real else both,)


def _chirp(sign: int, size: int, length: int) -> tuple[Any, ...]:
    squares = np.arange(size, dtype=object) ** 2 % (2 * size)
    z = _roots(squares.astype(np.int64), 2 * size, sign)
    around = np.zeros(length, complex)
    around[:size] = z.conj()
    around[length - size + 1 :] = z.conj()[:0:-1]
    return _pairs(z), _pairs(np.fft.fft(around))


def _roots(numbers: Any, length: int, sign: int) -> Any:
    """e ** (±2πi number / length), by angles of at most an eighth of a turn."""
    eighth = np.floor_divide(numbers * 8, length) % 8
    rest = (numbers * 8 - eighth * length) % (8 * length) / (8 * length) * (2 * np.pi)
    z = np.exp(sign * 1j * rest)
    exact = [1, math.sqrt(0.5) * (1 + sign * 1j), sign * 1j, math.sqrt(0.5) * (-1 + sign * 1j)]
    return z * np.array([*exact, *(-each for each in exact)])[eighth]


def _pairs(z: Any) -> Any:
    return np.stack([z.real, z.imag], -1)


def times(a: Tensor, b: Tensor) -> Tensor:
    """The product of complex numbers as pairs (…, 2)."""
    real, imaginary = a[..., :1], a[..., 1:]
    signs = a.__class__.arange(-1, 2, 2, dtype=a.dtype, device=a.device)  # -1, 1
    return real * b + imaginary * b.flip(-1) * signs


def _transformed(x: Tensor, tables: _Tables, is_real: bool) -> Tensor:
    """The transform of (…, n) real numbers or (…, n, 2) pairs along n, as (…, n, 2)."""
    size = known(x.shape[-1 if is_real else -2])
    batch = x.shape[: -1 if is_real else -2]
    if size <= LARGEST_FACTOR:
        flat = x if is_real else x.flatten(-2)
        return flat.dot(tables.matrix(size, is_real)).reshape((*batch, size, 2))
    factor = next((k for k in range(LARGEST_FACTOR, 1, -1) if size % k == 0), 1)
    if factor == 1:
        return _by_chirp(x, size, tables, is_real)
    rest = size // factor
    pairs = () if is_real else (2,)
    rank = len(batch)
    split = x.reshape((*batch, factor, rest, *pairs))
    permuted = split.permute(*range(rank), rank + 1, rank, *range(rank + 2, split.ndim))
    inner = _transformed(permuted, tables, is_real)  # (…, rest, factor, 2)
    inner = times(inner, tables.twiddles(rest, factor))
    swapped = inner.transpose(-2, -3).contiguous()  # (…, factor, rest, 2)
    outer = _transformed(swapped, tables, False)
    return outer.transpose(-2, -3).reshape((*batch, size, 2))


def _by_chirp(x: Tensor, size: int, tables: _Tables, is_real: bool) -> Tensor:
    """A transform of prime length, by 2 j k = j² + k² - (j - k)²."""
    length = 1 << (2 * size - 1).bit_length()
    chirp, spectrum = tables.chirp(size, length)
    modulated = x.unsqueeze(-1) * chirp if is_real else times(x, chirp)
    forward = _Tables(-1, tables.dtype, tables.device)
    backward = _Tables(1, tables.dtype, tables.device)
    padded = modulated.pad((0, 0, 0, length - size)).contiguous()
    product = times(_transformed(padded, forward, False), spectrum).contiguous()
    around = _transformed(product, backward, False)[..., :size, :]
    return times(around, chirp) * (1 / length)


def _resized(x: Tensor, axis: int, size: int, name: str) -> Tensor:
    """The first `size` elements along an axis, with zeros where there are fewer."""
    if size < 1:
        raise ShapeError(
            f"{name}: the length is {size}",
            facts=[("shape", x.shape), ("axis", axis)],
            rule="a transform has a length of at least 1",
        )
    own = known(x.shape[axis])
    if own == size:
        return x
    if own > size:
        return x.shrink([(0, size) if i == axis else None for i in range(x.ndim)])
    return x.pad([(0, size - own) if i == axis else (0, 0) for i in range(x.ndim)])


def _scale(size: int, norm: str | None, sign: int, name: str) -> float:
    kind = "backward" if norm is None else norm
    if kind not in _NORMS:
        raise ArgumentError(
            f"{name}: unknown norm {norm!r}", rule="norm is " + ", ".join(map(repr, _NORMS))
        )
    if kind == "ortho":
        return 1 / math.sqrt(size)
    return 1 / size if (kind == "forward") == (sign < 0) else 1.0


def _along(x: Tensor, axis: int, sign: int, norm: str | None, is_real: bool, name: str) -> Tensor:
    """A transform along one axis of pairs, or of real numbers, as pairs."""
    size = known(x.shape[axis])
    rank = x.ndim - (0 if is_real else 1)
    tables = _Tables(sign, x.dtype, x.device)
    result = _transformed(x.movedim(axis, rank - 1), tables, is_real).movedim(rank - 1, axis)
    scale = _scale(size, norm, sign, name)
    return result if scale == 1.0 else result * scale


def _require_pairs(name: str, self: Tensor) -> Tensor:
    if self.ndim < 2 or self.shape[-1] != 2:
        raise ShapeError(
            f"{name}: the last axis is not one of pairs",
            facts=[("shape", self.shape)],
            rule="complex numbers are pairs (real, imaginary) in a last axis of size 2",
            fix="of real numbers x take x.rfft(), or x.stack(x.zeros_like(), dim=-1)",
        )
    return widened(as_float(self))


def _axes_and_sizes(name: str, rank: int, s: Sizes, dim: Sizes) -> list[tuple[int, int | None]]:
    """The axes of a transform, each with the length that was asked for."""
    dims = (dim,) if isinstance(dim, int) else tuple(dim if dim is not None else (-2, -1))
    sizes = (s,) * len(dims) if s is None or isinstance(s, int) else tuple(s)
    if len(sizes) != len(dims):
        raise ArgumentError(f"{name}: {len(sizes)} lengths for {len(dims)} axes")
    axes = [axis_of(name, axis, rank) for axis in dims]
    return list(zip(axes, sizes, strict=True))


def _complex(self: Tensor, s: Sizes, dim: Sizes, norm: str | None, sign: int, name: str) -> Tensor:
    x = _require_pairs(name, self)
    for axis, size in _axes_and_sizes(name, x.ndim - 1, s, dim):
        x = _resized(x, axis, known(x.shape[axis]) if size is None else size, name)
        x = _along(x, axis, sign, norm, False, name)
    return x.cast(as_float(self).dtype)


def _from_real(self: Tensor, s: Sizes, dim: Sizes, norm: str | None, name: str) -> Tensor:
    """The last axis first, as real numbers and half of it; then the others."""
    x = widened(as_float(self))
    *others, (last, size) = _axes_and_sizes(name, x.ndim, s, dim)
    for axis, wanted in [*others, (last, size)]:
        x = _resized(x, axis, known(x.shape[axis]) if wanted is None else wanted, name)
    half = known(x.shape[last]) // 2 + 1
    x = _along(x, last, -1, norm, True, name)
    x = x.shrink([(0, half) if i == last else None for i in range(x.ndim)])
    for axis, _ in reversed(others):
        x = _along(x, axis, -1, norm, False, name)
    return x.cast(as_float(self).dtype)


def _to_real(self: Tensor, s: Sizes, dim: Sizes, norm: str | None, name: str) -> Tensor:
    """The other axes first; then the last, whose missing half is the conjugate of the first."""
    x = _require_pairs(name, self)
    *others, (last, size) = _axes_and_sizes(name, x.ndim - 1, s, dim)
    for axis, wanted in others:
        x = _resized(x, axis, known(x.shape[axis]) if wanted is None else wanted, name)
        x = _along(x, axis, 1, norm, False, name)
    length = 2 * (known(x.shape[last]) - 1) if size is None else size
    x = _resized(x, last, length // 2 + 1 if length > 0 else 0, name)
    inside = [(1, (length + 1) // 2) if i == last else None for i in range(x.ndim)]
    signs = x.__class__.arange(1, -2, -2, dtype=x.dtype, device=x.device)  # 1, -1
    mirrored = x.shrink(inside).flip(last) * signs
    whole = x.cat(mirrored, dim=last)
    return _along(whole, last, 1, norm, False, name)[..., 0].cast(as_float(self).dtype)


def fft(self: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return X[k] = Σ x[j] e ** (-2πi j k / n) of complex numbers as pairs (…, n, 2).

    `n` cuts or pads the axis first. `norm` divides: "backward" (None) nothing here and by n in
    `ifft`, "ortho" both by √n, "forward" here by n. As `torch.fft.fft` and `numpy.fft.fft`.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1.0, 0.0], [0.0, 0.0]]).fft().tolist()
    [[1.0, 0.0], [1.0, 0.0]]
    """
    return _complex(self, n, dim, norm, -1, "fft")


def ifft(self: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return x[j] = 1 / n Σ X[k] e ** (2πi j k / n) of complex numbers as pairs (…, n, 2).

    >>> from weft.tensor import Tensor
    >>> Tensor([[1.0, 0.0], [1.0, 0.0]]).ifft().tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    return _complex(self, n, dim, norm, 1, "ifft")


def rfft(self: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the first n // 2 + 1 numbers of the transform of real (…, n), as pairs.

    The others are their conjugates, backwards.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, 2.0]).rfft().tolist()
    [[3.0, 0.0], [-1.0, 0.0]]
    """
    return _from_real(self, n, dim, norm, "rfft")


def irfft(self: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the n real numbers whose `rfft` this is; n is 2 (m - 1) for (…, m, 2) by default.

    Imaginary parts that no real numbers have, of the first and for even n of the last number, are
    not looked at.

    >>> from weft.tensor import Tensor
    >>> Tensor([[3.0, 0.0], [-1.0, 0.0]]).irfft().tolist()
    [1.0, 2.0]
    """
    return _to_real(self, n, dim, norm, "irfft")


def fft2(self: Tensor, s: Sizes = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """Return the transform of pairs (…, m, n, 2) along both axes, or along those named.

    >>> from weft.tensor import Tensor
    >>> Tensor([[[1.0, 0.0], [0.0, 0.0]]]).fft2().tolist()
    [[[1.0, 0.0], [1.0, 0.0]]]
    """
    return _complex(self, s, dim, norm, -1, "fft2")


def ifft2(self: Tensor, s: Sizes = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """Return the inverse of `fft2`.

    PyTorch and NumPy: fft.ifft2.

    >>> from weft.tensor import Tensor
    >>> Tensor.ones(2, 2, 2).ifft2().shape
    (2, 2, 2)
    """
    return _complex(self, s, dim, norm, 1, "ifft2")


def rfft2(self: Tensor, s: Sizes = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """Return the transform of real (…, m, n) along both axes, as pairs (…, m, n // 2 + 1, 2).

    PyTorch and NumPy: fft.rfft2.

    >>> from weft.tensor import Tensor
    >>> Tensor.ones(2, 2).rfft2().shape
    (2, 2, 2)
    """
    return _from_real(self, s, dim, norm, "rfft2")


def irfft2(self: Tensor, s: Sizes = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """Return the inverse of `rfft2`.

    PyTorch and NumPy: fft.irfft2.

    >>> from weft.tensor import Tensor
    >>> Tensor.ones(2, 2, 2).irfft2().shape
    (2, 2)
    """
    return _to_real(self, s, dim, norm, "irfft2")
