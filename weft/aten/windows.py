"""Windows by their names at the top of torch: periodic unless told otherwise."""

from __future__ import annotations

from typing import Any

from weft.signal import windows
from weft.tensor.tensor import Tensor


def _made(kind: str, length: int, periodic: bool, options: dict[str, Any], **more: Any) -> Tensor:
    options.pop("pin_memory", None)
    found: Tensor = getattr(windows, kind)(int(length), sym=not periodic, **more, **options)
    return found


def hann_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """0.5 - 0.5 cos.

    >>> hann_window(4).tolist()
    [0.0, 0.5, 1.0, 0.5]
    """
    return _made("hann", window_length, periodic, options)


def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    **options: Any,
) -> Tensor:
    """alpha - beta cos."""
    return _made("general_cosine", window_length, periodic, options, a=[alpha, beta])


def blackman_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """0.42 - 0.5 cos + 0.08 cos of twice the angle."""
    return _made("blackman", window_length, periodic, options)


def bartlett_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """A triangle with zeros at its ends."""
    return _made("bartlett", window_length, periodic, options)


def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, **options: Any
) -> Tensor:
    """A ratio of Bessel functions, whose side lobes `beta` decides."""
    return _made("kaiser", window_length, periodic, options, beta=beta)
