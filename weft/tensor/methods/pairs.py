"""Pairs of results by the names that they have in PyTorch; they unpack as tuples do."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


class Picked(NamedTuple):
    """Elements, and the positions that they have along their axis."""

    values: Tensor
    indices: Tensor


class Extremes(NamedTuple):
    """The least elements and the greatest."""

    min: Tensor
    max: Tensor
