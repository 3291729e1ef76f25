"""Spectra of frames of a signal, and the signal of such spectra: `stft` and `istft`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from weft.ir.dtypes import complex_of
from weft.support.errors import ArgumentError, ShapeError
from weft.tensor.checks import known
from weft.tensor.complexes.parts import view_as_complex, view_as_real
from weft.tensor.methods import fourier

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def _window(self: Tensor, window: Tensor | None, length: int, n_fft: int, name: str) -> Tensor:
    """A window of `length` numbers in the middle of n_fft."""
    if not 0 < length <= n_fft:
        raise ArgumentError(
            f"{name}: win_length {length} is not from 1 to n_fft {n_fft}",
            rule="a window is not longer than a frame",
        )
    if window is None:
        dtype = self.dtype.part if self.dtype.is_inexact else None
        window = self.__class__.ones(length, dtype=dtype, device=self.device)
    if window.shape != (length,):
        raise ShapeError(
            f"{name}: the window has shape {window.shape}, not ({length},)",
            rule="a window has win_length numbers",
        )
    left = (n_fft - length) // 2
    return window.pad((left, n_fft - length - left)) if length < n_fft else window


def stft(
    self: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool = True,
) -> Tensor:
    """Return the spectra of overlapping frames of a signal (…, n): (…, frequencies, frames).

    A frame has n_fft numbers, times a window, and begins hop_length after the last, a quarter of
    n_fft unless it is given. With `center` the signal is padded so that frames are around their
    positions. Of a real signal the first half is given unless `onesided` is False.
    PyTorch: stft.

    >>> from weft.tensor import Tensor
    >>> Tensor.ones(16).stft(8).shape
    (5, 9)
    """
    hop = n_fft // 4 if hop_length is None else hop_length
    if hop <= 0:
        raise ArgumentError(f"stft: hop_length {hop} is not above 0")
    shaped = _window(self, window, n_fft if win_length is None else win_length, n_fft, "stft")
    x = self.reshape(1, -1) if self.ndim == 1 else self
    if center:
        x = x.pad((n_fft // 2, n_fft // 2), mode=pad_mode)
    if known(x.shape[-1]) < n_fft:
        raise ShapeError(
            f"stft: a signal of {x.shape[-1]} numbers has no frame of {n_fft}",
            rule="n_fft is at most the length of the signal, with its padding",
        )
    frames = x.unfold(-1, n_fft, hop) * shaped  # (batch, frames, n_fft)
    is_half = not frames.dtype.is_complex if onesided is None else onesided
    if is_half and not frames.dtype.is_complex:
        spectrum = fourier.rfft(frames)
    else:
        spectrum = fourier.fft(view_as_real(frames.cast(complex_of(frames.dtype))))
    spectrum = spectrum.transpose(1, 2)  # (batch, frequencies, frames, 2)
    if normalized:
        spectrum = spectrum * (1 / math.sqrt(n_fft))
    result = view_as_complex(spectrum) if return_complex else spectrum
    return result[0] if self.ndim == 1 else result


def istft(
    self: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """Return the signal whose `stft` this is: overlapping frames are added and divided.

    PyTorch: istft.

    >>> from weft.tensor import Tensor
    >>> [round(y, 4) for y in Tensor([1.0, 2.0, 3.0, 4.0]).stft(4).istft(4, length=4).tolist()]
    [1.0, 2.0, 3.0, 4.0]
    """
    hop = n_fft // 4 if hop_length is None else hop_length
    shaped = _window(self, window, n_fft if win_length is None else win_length, n_fft, "istft")
    spectra = self.unsqueeze(0) if self.ndim == 2 else self  # (batch, frequencies, frames)
    is_half = spectra.shape[1] != n_fft if onesided is None else onesided
    pairs: Any = view_as_real(spectra).transpose(1, 2)  # (batch, frames, frequencies, 2)
    if normalized:
        pairs = pairs * math.sqrt(n_fft)
    if is_half and not return_complex:
        frames = fourier.irfft(pairs, n=n_fft)
    else:
        both = view_as_complex(fourier.ifft(pairs))
        frames = both if return_complex else both.real
    signal = _added(frames * shaped, hop)
    weight = _added((shaped * shaped).reshape(1, 1, n_fft).expand(1, frames.shape[1], -1), hop)
    first = n_fft // 2 if center else 0
    last = known(signal.shape[-1]) - first if length is None else first + length
    total = (signal / (weight == 0).where(1.0, weight))[..., first:last]
    if length is not None and known(total.shape[-1]) < length:
        total = total.pad((0, length - known(total.shape[-1])))
    return total[0] if self.ndim == 2 else total


def _added(frames: Tensor, hop: int) -> Tensor:
    """Frames (batch, count, size) added where they overlap: (batch, (count - 1) hop + size)."""
    count, size = known(frames.shape[1]), known(frames.shape[2])
    steps = -(-size // hop)  # each frame as blocks of `hop` numbers
    blocks = frames.pad((0, steps * hop - size)).reshape(-1, count, steps, hop)
    rows = [
        blocks[:, :, step].pad((0, 0, step, steps - 1 - step)) for step in range(steps)
    ]  # (batch, count + steps - 1, hop)
    total = rows[0]
    for row in rows[1:]:
        total = total + row
    return total.reshape(total.shape[0], -1)[:, : (count - 1) * hop + size]
