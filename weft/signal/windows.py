"""Window functions, with the names and the arguments of torch.signal.windows.

A window is computed in float64 on the host. Without `sym` it is one period of a repeating one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from weft.ir.dtypes import dtypes
from weft.support.errors import ArgumentError
from weft.tensor.tensor import Tensor

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def _numbers(name: str, M: int, sym: bool) -> tuple[Any, float]:
    """The numbers of the elements, and how many steps a period has."""
    if M < 0:
        raise ArgumentError(f"{name}: M is {M}", rule="a window has 0 elements or more")
    steps = M - 1 if sym else M
    return np.arange(M, dtype=np.float64), float(max(steps, 1)) if M > 1 else 1.0


def _made(values: Any, options: dict[str, Any]) -> Tensor:
    for name in ("layout", "out"):
        options.pop(name, None)
    dtype = options.pop("dtype", None) or dtypes.default_float
    return Tensor(np.asarray(values, np.float64), dtype=dtype, **options)


def bartlett(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """A triangle with zeros at its ends."""
    n, steps = _numbers("bartlett", M, sym)
    return _made(np.ones(M) if M == 1 else 1 - np.abs(2 * n / steps - 1), options)


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, **options: Any) -> Tensor:
    """A sum of cosines with alternating signs."""
    n, steps = _numbers("general_cosine", M, sym)
    if M == 1:
        return _made(np.ones(1), options)
    total = sum(
        (-1) ** k * weight * np.cos(2 * np.pi * k * n / steps) for k, weight in enumerate(a)
    )
    return _made(total + np.zeros(M), options)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **options: Any) -> Tensor:
    """alpha - (1 - alpha) cos."""
    return general_cosine(M, a=[alpha, 1 - alpha], sym=sym, **options)


def hamming(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """0.54 - 0.46 cos."""
    return general_hamming(M, sym=sym, **options)


def hann(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """0.5 - 0.5 cos."""
    return general_hamming(M, alpha=0.5, sym=sym, **options)


def blackman(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """0.42 - 0.5 cos + 0.08 cos of twice the angle."""
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, **options)


def nuttall(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Four cosines, with small side lobes."""
    weights = [0.3635819, 0.4891775, 0.1365995, 0.0106411]
    return general_cosine(M, a=weights, sym=sym, **options)


def cosine(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Half a period of a sine."""
    n, _ = _numbers("cosine", M, sym)
    if M == 1:
        return _made(np.ones(1), options)
    steps = M if sym else M + 1
    return _made(np.sin(np.pi * (n + 0.5) / max(steps, 1)), options)


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **options: Any
) -> Tensor:
    """A decay to both sides of the center."""
    n, steps = _numbers("exponential", M, sym)
    middle = (steps if M > 1 else 0) / 2 if center is None else center
    return _made(np.exp(-np.abs(n - middle) / tau), options)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **options: Any) -> Tensor:
    """The bell of the normal distribution."""
    n, steps = _numbers("gaussian", M, sym)
    middle = (steps if M > 1 else 0) / 2
    return _made(np.exp(-(((n - middle) / std) ** 2) / 2), options)


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **options: Any) -> Tensor:
    """A ratio of Bessel functions, whose side lobes `beta` decides."""
    n, steps = _numbers("kaiser", M, sym)
    if M == 1:
        return _made(np.ones(1), options)
    inside = np.clip(1 - (2 * n / steps - 1) ** 2, 0, None)
    return _made(np.i0(beta * np.sqrt(inside)) / np.i0(beta), options)
