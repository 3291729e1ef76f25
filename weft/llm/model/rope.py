"""Rotary positions: angles of positions, with every usual way to reach past the first context.

Angles are computed on the host in float64, a few numbers for each token, and rotate queries and
keys inside of the kernels. `frequencies` is a table of ways, by their names.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from weft.llm.model.config import Rope
from weft.tensor.tensor import Tensor


def angles(rope: Rope, positions: Any, length: int) -> tuple[Any, Any]:
    """Cosines and sines (..., size / 2) of positions (...), in a context of `length`.

    Ways that depend on the length take that of the context, so that keys in a cache stay right.

    >>> import numpy as np
    >>> cosines, sines = angles(Rope(size=4), np.array([0, 1]), 2)
    >>> cosines.shape, cosines[0].tolist()
    ((2, 2), [1.0, 1.0])
    """
    rates, magnitude = frequencies(rope, length)
    angle = np.asarray(positions, np.float64)[..., None] * rates
    return (
        (np.cos(angle) * magnitude).astype(np.float32),
        (np.sin(angle) * magnitude).astype(np.float32),
    )


@lru_cache(64)
def frequencies(rope: Rope, length: int) -> tuple[Any, float]:
    """The angle of each pair per position, and the factor of rotated elements.

    >>> rates, magnitude = frequencies(Rope(base=100.0, size=4), 8)
    >>> rates.round(6).tolist(), magnitude
    ([1.0, 0.1], 1.0)
    """
    exponents = np.arange(0, rope.size, 2) / rope.size
    rates = rope.base**-exponents
    magnitude = rope.magnitude or 1.0
    match rope.scaling:
        case "linear":
            return rates / rope.factor, magnitude
        case "ntk":
            return _ntk(rope, exponents, length), magnitude
        case "llama3":
            return _by_wavelength(rope, rates), magnitude
        case "yarn":
            return _yarn(rope, rates), rope.magnitude or 0.1 * math.log(rope.factor) + 1.0
        case "longrope":
            is_long = length > rope.original_context
            factors = rope.long_factors if is_long else rope.short_factors
            return rates / np.array(factors or (1.0,)), rope.magnitude or _long_magnitude(rope)
    return rates, magnitude


def _ntk(rope: Rope, exponents: Any, length: int) -> Any:
    """A larger base from the original context on, so that the longest wave spans it all."""
    original = rope.original_context or length
    grown = rope.factor * max(length, original) / original - (rope.factor - 1)
    return (rope.base * grown ** (rope.size / (rope.size - 2))) ** -exponents


def _by_wavelength(rope: Rope, rates: Any) -> Any:
    """Low frequencies are divided by the factor, high ones stay, those between are mixed."""
    wavelengths = 2 * np.pi / rates
    low = rope.original_context / rope.low_factor
    high = rope.original_context / rope.high_factor
    share = (rope.original_context / wavelengths - rope.low_factor) / (
        rope.high_factor - rope.low_factor
    )
    mixed = (1 - share) * rates / rope.factor + share * rates
    return np.where(
        wavelengths > low, rates / rope.factor, np.where(wavelengths < high, rates, mixed)
    )


def _yarn(rope: Rope, rates: Any) -> Any:
    """Pairs that rotate often within the original context stay, slow ones are divided."""

    def pair_of(rotations: float) -> float:
        span = rope.original_context / (rotations * 2 * math.pi)
        return rope.size * math.log(span) / (2 * math.log(rope.base))

    low = max(math.floor(pair_of(rope.fast)), 0)
    high = min(math.ceil(pair_of(rope.slow)), rope.size - 1)
    slope = (np.arange(rope.size // 2) - low) / max(high - low, 0.001)
    stays = 1 - np.clip(slope, 0, 1)
    return rates / rope.factor * (1 - stays) + rates * stays


def _long_magnitude(rope: Rope) -> float:
    if rope.factor <= 1:
        return 1.0
    return math.sqrt(1 + math.log(rope.factor) / math.log(rope.original_context))


def rotated(x: Tensor, cosines: Tensor, sines: Tensor, is_interleaved: bool) -> Tensor:
    """Heads (rows, time, heads, size) rotated by angles (rows, time, rotated / 2).

    A pair (a, b) becomes (a cos - b sin, b cos + a sin); what is past the angles stays.

    >>> from weft.tensor import Tensor
    >>> x = Tensor([1.0, 0.0, 0.0, 5.0]).reshape(1, 1, 1, 4)
    >>> cosines, sines = Tensor([[[0.0, 1.0]]]), Tensor([[[1.0, 0.0]]])
    >>> rotated(x, cosines, sines, False).flatten().tolist()
    [0.0, 0.0, 1.0, 5.0]
    >>> rotated(x, cosines, sines, True).flatten().tolist()
    [0.0, 1.0, 0.0, 5.0]
    """
    half = int(cosines.shape[-1])
    first, rest = x[..., : 2 * half], x[..., 2 * half :]
    axis = -1 if is_interleaved else -2
    pairs = first.unflatten(-1, (-1, 2) if is_interleaved else (2, -1))
    sign = (Tensor.arange(2) * 2 - 1).reshape(2 if is_interleaved else (2, 1))
    cosines, sines = (each.unsqueeze(2).unsqueeze(axis) for each in (cosines, sines))
    mixed = (pairs * cosines + pairs.flip(axis) * sines * sign).flatten(-2)
    return mixed if 2 * half == int(x.shape[-1]) else mixed.cat(rest, dim=-1)
