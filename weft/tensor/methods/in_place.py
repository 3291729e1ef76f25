"""Methods with a trailing underscore: compute, then write the result to the tensor itself.

`attach` makes `x.name_(...)` of every `x.name(...)` of the table, so the two cannot differ. The
dtype and the shape stay, and a tensor that requires a gradient is refused, as for `x += 1`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from weft.ir.uop import UOp
from weft.tensor.create.generator import takes_generator
from weft.tensor.writes import set_all

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

NAMES: Final = """
    abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr arccos arccosh arcsin
    arcsinh arctan arctan2 arctanh asin asinh atan atan2 atanh baddbmm bitwise_and
    bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor cauchy ceil celu
    clamp clamp_max clamp_min clip conj_physical copysign cos cosh cumprod cumsum deg2rad
    digamma div divide elu eq erf erfc erfinv exp exp2 expm1 exponential fix float_power floor
    floor_divide fmod frac gcd ge geometric greater greater_equal gt hardsigmoid hardswish
    hardtanh heaviside hypot i0 igamma igammac index_add index_fill index_put index_reduce lcm
    ldexp le leaky_relu lerp less less_equal lgamma log log10 log1p log2 log_normal logical_and
    logical_not logical_or logical_xor logit lshift lt masked_fill masked_scatter mish mul
    multiply mvlgamma nan_to_num ne neg negative nextafter not_equal polygamma pow put rad2deg
    reciprocal relu relu6 remainder renorm round rshift rsqrt scatter scatter_add scatter_reduce
    selu sgn sigmoid sign silu sin sinc sinh sqrt square sub subtract tan tanh threshold tril
    triu true_divide trunc xlogy
"""


def _in_place(name: str) -> Callable[..., Tensor]:
    def function(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        result = getattr(self, name)(*args, **kwargs)
        return self if result is self else self._update(result, name)

    function.__name__ = function.__qualname__ = f"{name}_"
    function.__doc__ = f"Write the result of `{name}` to this tensor, and return it."
    return function


def attach(cls: type[Tensor]) -> None:
    """Give a class the in-place form of each method in the table."""
    for name in NAMES.split():
        setattr(cls, f"{name}_", _in_place(name))


def fill_(self: Tensor, value: Any) -> Tensor:
    """Write one value to all elements, and return the tensor. PyTorch: fill_; NumPy: fill.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2]).fill_(7).tolist()
    [7, 7]
    """
    is_number = isinstance(value, (bool, int, float, UOp))
    return set_all(self, self.full_like(value) if is_number else value)


def fill(self: Tensor, value: Any) -> Tensor:
    """Return a tensor of this shape and dtype with one value everywhere. PyTorch: fill.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2]).fill(7).tolist()
    [7, 7]
    """
    if isinstance(value, (bool, int, float)):
        return self.full_like(value)
    return value.cast(self.dtype).expand(self.shape)._same()  # type: ignore[no-any-return]


def resize_(self: Tensor, *size: Any, memory_format: Any = None) -> Tensor:
    """Become a tensor of another shape with the first elements of this one; others are 0.

    PyTorch: resize_, where further elements are anything.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2, 3]).resize_(2, 1).tolist()
    [[1], [2]]
    """
    shape = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
    count = math.prod(shape)
    flat = self.flatten()
    have = self.numel()
    flat = flat[:count] if count <= have else flat.pad((0, count - have))
    new = flat.reshape(shape)._same()
    self._storage, self._steps, self._seen = new._storage, new._steps, None
    return self


def resize_as_(self: Tensor, other: Tensor, *, memory_format: Any = None) -> Tensor:
    """Become a tensor of another's shape, as `resize_` does. PyTorch: resize_as_.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2, 3]).resize_as_(Tensor([0, 0])).tolist()
    [1, 2]
    """
    return resize_(self, other.shape)


def zero_(self: Tensor) -> Tensor:
    """Write zeros to all elements, and return the tensor. PyTorch: zero_.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2]).zero_().tolist()
    [0, 0]
    """
    return set_all(self, self.zeros_like())


def copy_(self: Tensor, src: Tensor) -> Tensor:
    """Write another tensor's elements to this one, cast, moved and broadcast. PyTorch: copy_.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2]).copy_(Tensor([3.5])).tolist()
    [3, 3]
    """
    return set_all(self, src.to(self.device))


@takes_generator
def uniform_(
    self: Tensor, low: float = 0.0, high: float = 1.0, *, generator: Any = None
) -> Tensor:
    """Write random numbers from `low` to below `high`. PyTorch: uniform_.

    >>> from weft.tensor import Tensor
    >>> x = Tensor.zeros(3).uniform_(2, 4)
    >>> bool(((x >= 2) & (x < 4)).all())
    True
    """
    return set_all(
        self, self.uniform(*self.shape, low=low, high=high, dtype=self.dtype, device=self.device)
    )


@takes_generator
def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Tensor:
    """Write random numbers of a normal distribution. PyTorch: normal_.

    >>> from weft.tensor import Tensor
    >>> bool(Tensor.zeros(3).normal_().isfinite().all())
    True
    """
    return set_all(
        self, self.normal(*self.shape, mean=mean, std=std, dtype=self.dtype, device=self.device)
    )
