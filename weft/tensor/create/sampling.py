"""Samples of distributions, written to a tensor or drawn in its shape."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from weft.ir.dtypes import dtypes
from weft.support.errors import ArgumentError
from weft.tensor.create.generator import takes_generator
from weft.tensor.writes import set_all

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def _unit(self: Tensor) -> Tensor:
    """Numbers above 0 and below 1 in a tensor's shape."""
    dtype = self.dtype if self.dtype.is_float and self.dtype.bits >= 32 else dtypes.float32
    drawn = self.rand(*self.shape, dtype=dtype, device=self.device)
    return drawn.clamp(min_=2.0**-25)


@takes_generator
def bernoulli(self: Tensor, p: Any = None, *, generator: Any = None) -> Tensor:
    """Draw 1 with these probabilities, or with one for all, and 0 otherwise. PyTorch: bernoulli.

    >>> from weft.tensor import Tensor
    >>> Tensor([0.0, 1.0]).bernoulli().tolist()
    [0.0, 1.0]
    """
    chance = self if p is None else p
    drawn = self.rand(*self.shape, dtype=dtypes.float32, device=self.device)
    return (drawn < chance).cast(self.dtype)


@takes_generator
def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """Write 1 with probability p, and 0 otherwise. PyTorch: bernoulli_.

    >>> from weft.tensor import Tensor
    >>> Tensor([0.5, 0.5]).bernoulli_(1.0).tolist()
    [1.0, 1.0]
    """
    return set_all(self, bernoulli(self, p))


@takes_generator
def exponential(self: Tensor, lambd: float = 1.0, *, generator: Any = None) -> Tensor:
    """Draw from the exponential distribution in this shape.

    >>> from weft.tensor import Tensor
    >>> bool((Tensor.zeros(4).exponential() >= 0).all())
    True
    """
    if lambd <= 0:
        raise ArgumentError(f"exponential: lambd is {lambd}", rule="lambd is above 0")
    return (-_unit(self).log() / lambd).cast(self.dtype)


@takes_generator
def cauchy(
    self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None
) -> Tensor:
    """Draw from the Cauchy distribution in this shape.

    >>> from weft.tensor import Tensor
    >>> Tensor.zeros(4).cauchy().shape
    (4,)
    """
    return (median + sigma * ((_unit(self) - 0.5) * math.pi).tan()).cast(self.dtype)


@takes_generator
def geometric(self: Tensor, p: float, *, generator: Any = None) -> Tensor:
    """Draw how many trials a success takes, in this shape.

    >>> from weft.tensor import Tensor
    >>> bool((Tensor.zeros(4).geometric(0.5) >= 1).all())
    True
    """
    if not 0 < p < 1:
        raise ArgumentError(f"geometric: p is {p}", rule="p is above 0 and below 1")
    return (_unit(self).log() / math.log1p(-p)).ceil().clamp(min_=1).cast(self.dtype)


@takes_generator
def log_normal(
    self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Any = None
) -> Tensor:
    """Draw exp of normal numbers in this shape.

    >>> from weft.tensor import Tensor
    >>> bool((Tensor.zeros(4).log_normal() > 0).all())
    True
    """
    drawn = self.randn(*self.shape, dtype=dtypes.float32, device=self.device)
    return (drawn * std + mean).exp().cast(self.dtype)


@takes_generator
def random_(
    self: Tensor, low: int = 0, high: int | None = None, *, generator: Any = None
) -> Tensor:
    """Write integers from `low` to below `high`. PyTorch: random_.

    >>> from weft.tensor import Tensor
    >>> Tensor([9, 9]).random_(0, 1).tolist()
    [0, 0]
    """
    if high is None and low:
        low, high = 0, low
    if high is None:
        high = 2 ** min(24 if self.dtype.is_float else self.dtype.bits - 1, 62)
    drawn = self.randint(*self.shape, low=low, high=high, dtype="int64", device=self.device)
    return set_all(self, drawn.cast(self.dtype))


def randint_like(self: Tensor, *limits: Any, **options: Any) -> Tensor:
    """Draw integers below a number, or between two, in this shape. PyTorch: randint_like.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, 2.0]).randint_like(1).tolist()
    [0.0, 0.0]
    """
    low = options.pop("low", limits[0] if len(limits) == 2 else 0)
    high = options.pop("high", limits[-1] if limits else None)
    dtype = options.pop("dtype", None) or self.dtype
    options.pop("memory_format", None)
    drawn = self.randint(
        *self.shape, low=int(low), high=int(high), dtype="int64", device=self.device
    )
    return drawn.cast(dtype)


def empty_strided(cls: type[Tensor], /, size: Any, stride: Any, **options: Any) -> Tensor:
    """Create a tensor of any elements; memory has no strides here. PyTorch: empty_strided.

    >>> from weft.tensor import Tensor
    >>> Tensor.empty_strided((2, 3), (1, 2)).shape
    (2, 3)
    """
    return cls.empty(*size, **options)


def new_empty_strided(self: Tensor, size: Any, stride: Any, **options: Any) -> Tensor:
    """Create a tensor of any elements and of this dtype. PyTorch: new_empty_strided.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0]).new_empty_strided((2,), (1,)).shape
    (2,)
    """
    return self.new_empty(*size, **options)


def scalar_tensor(cls: type[Tensor], /, value: Any, **options: Any) -> Tensor:
    """Create a tensor without axes, a float unless told otherwise. PyTorch: scalar_tensor.

    >>> from weft.tensor import Tensor
    >>> Tensor.scalar_tensor(2).item()
    2.0
    """
    options.pop("layout", None)
    return cls(value, dtype=options.pop("dtype", None) or dtypes.default_float, **options)
