"""Tensors of random numbers: distributions of what `random_state` draws."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weft.ir import movement
from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import Op
from weft.ir.sizes import most
from weft.ir.uop import UOp, const, make
from weft.support.errors import ArgumentError, DTypeError
from weft.tensor.autodiff.leaves import remember
from weft.tensor.checks import ints_of, known, require_number_fits, shape_from
from weft.tensor.complexes.parts import complex_of_parts
from weft.tensor.create.creation import device_name, require_known, with_size
from weft.tensor.create.generator import takes_generator
from weft.tensor.create.random_state import draw
from weft.tensor.host.convert import dtype_of
from weft.tensor.indexing.sorting import positions_in_order

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

DTypeLike = DType | str | None


def _unit(words: tuple[UOp, UOp], dtype: DType) -> UOp:
    """Floats in [0, 1), all equally far apart; as many bits as the dtype holds exactly."""
    first, second = words
    if dtype is dtypes.float64:
        high, low = (first >> 5).cast(dtype), (second >> 6).cast(dtype)
        return (high * 2.0**26 + low) * 2.0**-53
    assert dtype.format is not None
    bits = min(dtype.format.mantissa_bits + 1, 24)
    return (first >> 32 - bits).cast(dtypes.float32).__mul__(2.0**-bits).cast(dtype)


def _gauss(words: tuple[UOp, UOp], target: DType) -> UOp:
    """Box and Muller: a radius from one uniform number and an angle from another."""
    first, second = words
    inner = dtypes.float64 if target is dtypes.float64 else dtypes.float32
    # From 2**-33 up to below 1: the logarithm needs more than 0.
    radius = (first.cast(dtypes.float64) + 0.5) * 2.0**-32 if inner is dtypes.float64 else None
    if radius is None:
        radius = first.cast(inner) * 2.0**-32 + 2.0**-33
    log = make(Op.LOG, inner, (radius,)) * -2.0
    angle = second.cast(inner) * (2.0**-32 * 2 * math.pi)
    zero = const(inner, 0.0)
    value = make(Op.SQRT, inner, (log.maximum(zero),)) * make(Op.COS, inner, (angle,))
    return value.cast(target)


def _integers(words: tuple[UOp, UOp], low: int, high: int, target: DType) -> UOp:
    """Integers from `low` to below `high`."""
    first, second = words
    # 64 bits modulo the span favor no number by more than span / 2**64.
    wide = first.cast(dtypes.uint64) << 32 | second.cast(dtypes.uint64)
    return ((wide % (high - low)).cast(dtypes.int64) + low).cast(target)


def _first(words: tuple[UOp, UOp]) -> UOp:
    return words[0]


def _drawn(shape: Any, device: str, kind: Callable[..., UOp], *options: Any) -> UOp:
    """What is drawn in a shape; of a symbolic one the greatest is drawn, and cut."""
    node = draw(tuple(map(most, shape)), device, kind, *options)
    if any(not isinstance(size, int) for size in shape):
        node = movement.shrink(node, [(0, size) for size in shape])
    return node


def _made(cls: type[Tensor], node: UOp, device: str, requires_grad: bool | None) -> Tensor:
    return remember(cls._value(node, device), requires_grad)


def _plan(
    name: str, shape: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, str, DType, bool | None]:
    """Shape, device, dtype and requires_grad of what is drawn."""
    shape = with_size(shape, kwargs)
    require_known(name, kwargs)
    sizes = shape_from(name, ints_of(name, shape[0], shape[1:]) if shape else ())
    dtype = dtype_of(kwargs.get("dtype"), dtypes.default_float)
    return sizes, device_name(kwargs.get("device")), dtype, kwargs.get("requires_grad")


def _require_float(name: str, dtype: DType) -> None:
    if not dtype.is_float:
        raise DTypeError(
            f"{name}: random {dtype.name}", rule=f"{name} draws floats", fix="use Tensor.randint"
        )


def _complex(
    drawn: Callable[..., Tensor], shape: Any, options: dict[str, Any], scale: float
) -> Tensor:
    """Complex numbers whose parts are drawn alike, with a variance of 1 for both together."""
    part = dtype_of(options.pop("dtype"), dtypes.default_float).part
    requires_grad = options.pop("requires_grad", None)
    real, imag = (drawn(*shape, dtype=part, **options) * scale for _ in range(2))
    return remember(complex_of_parts(real, imag), requires_grad)


@takes_generator
def rand(
    cls: type[Tensor],
    /,
    *shape: Any,
    device: str | None = None,
    dtype: DTypeLike = None,
    contiguous: bool = True,
    **kwargs: Any,
) -> Tensor:
    """Draw floats from 0 to below 1, all alike. PyTorch: rand; NumPy: random.random.

    `contiguous` is accepted for programs that choose, and changes nothing.

    >>> from weft.tensor import Tensor
    >>> Tensor.rand(2, 3).shape
    (2, 3)
    """
    options = {"device": device, "dtype": dtype, **kwargs}
    if dtype_of(dtype, dtypes.default_float).is_complex:
        return _complex(cls.rand, shape, options, 1.0)
    sizes, name, target, requires_grad = _plan("rand", shape, options)
    _require_float("rand", target)
    return _made(cls, _drawn(sizes, name, _unit, target), name, requires_grad)


@takes_generator
def randn(cls: type[Tensor], /, *shape: Any, dtype: DTypeLike = None, **kwargs: Any) -> Tensor:
    """Draw floats of the normal distribution with mean 0 and deviation 1.

    The dtype is the default float, or what dtype= says. PyTorch: randn; NumPy: random.randn.

    >>> from weft.tensor import Tensor
    >>> Tensor.randn(2, 3).shape
    (2, 3)
    """
    if dtype_of(dtype, dtypes.default_float).is_complex:
        return _complex(cls.randn, shape, {"dtype": dtype, **kwargs}, math.sqrt(0.5))
    sizes, device, target, requires_grad = _plan("randn", shape, {"dtype": dtype, **kwargs})
    _require_float("randn", target)
    return _made(cls, _drawn(sizes, device, _gauss, target), device, requires_grad)


@takes_generator
def randint(
    cls: type[Tensor],
    /,
    *shape: Any,
    low: int = 0,
    high: int = 10,
    dtype: DTypeLike = None,
    **kwargs: Any,
) -> Tensor:
    """Draw integers from `low` to below `high`; int32 unless a dtype is given.

    A shape as the last of several arguments is PyTorch's way: `randint(low, high, shape)`. The
    name in NumPy is random.randint.

    >>> from weft.tensor import Tensor
    >>> x = Tensor.randint(2, 3, low=1, high=5)
    >>> x.shape, bool(((x >= 1) & (x < 5)).all()), Tensor.randint(1, 5, (2, 3)).shape
    ((2, 3), True, (2, 3))
    """
    if 2 <= len(shape) <= 3 and isinstance(shape[-1], (tuple, list)):
        *limits, shape = shape
        low, high = limits if len(limits) == 2 else (low, limits[0])
    target = dtype_of(dtype, dtypes.int32)
    sizes, device, _, _ = _plan("randint", shape, kwargs)
    if not target.is_int and not target.is_float:
        raise DTypeError(f"randint: random {target.name}", rule="randint draws integers")
    if low >= high:
        raise ArgumentError(
            f"randint: expected low < high, got {low} and {high}",
            rule="randint draws from low to below high",
        )
    for limit in (low, high - 1):
        require_number_fits("randint", limit, target)
    return _made(cls, _drawn(sizes, device, _integers, low, high, target), device, None)


@takes_generator
def randperm(
    cls: type[Tensor],
    /,
    n: int,
    device: str | None = None,
    dtype: DTypeLike = None,
    **kwargs: Any,
) -> Tensor:
    """Draw a permutation of the integers from 0 to below `n`; int32 unless a dtype is given.

    Every integer draws a random number, and these are sorted. As `torch.randperm`, and
    `numpy.random.permutation`.

    >>> from weft.tensor import Tensor
    >>> sorted(Tensor.randperm(4).tolist())
    [0, 1, 2, 3]
    """
    require_known("randperm", kwargs)
    if n < 0:
        raise ArgumentError(f"randperm: {n} integers", rule="n is an int from 0 on")
    name = device_name(device)
    noise = cls._value(draw((n,), name, _first), name)
    return positions_in_order(noise).cast(dtype_of(dtype, dtypes.int32))


@takes_generator
def multinomial(
    self: Tensor, num_samples: int = 1, replacement: bool = False, *, generator: Any = None
) -> Tensor:
    """Draw positions by the weights of a vector, or of each row of a matrix, as int64.

    The weights need not add up to 1. Without replacement a position is drawn once at most: those
    with the least of exponential numbers over the weights are taken. As `torch.multinomial`.

    >>> from weft.tensor import Tensor
    >>> Tensor([0.0, 1.0]).multinomial(3, replacement=True).tolist()
    [1, 1, 1]
    """
    if self.ndim not in (1, 2) or not self.dtype.is_float:
        raise DTypeError(
            f"multinomial: a {self.dtype.name} of shape {self.shape}",
            rule="weights are floats in a vector or a matrix",
        )
    size = known(self.shape[-1])
    if num_samples < 1 or (not replacement and num_samples > size):
        raise ArgumentError(
            f"multinomial: {num_samples} of {size} positions",
            rule="there is at least one sample, and without replacement at most one for each",
        )
    weights = self.detach().float()
    make_rand = self.__class__.rand
    if replacement:
        total = weights.cumsum(-1)
        shape = (*self.shape[:-1], num_samples)
        noise = make_rand(*shape, dtype=dtypes.float32, device=self.device)
        found = total.searchsorted(noise * total[..., -1:], right=True)
        last = (weights > 0).where(self._new(movement.iota(size, dtypes.int64)), 0).max(-1, True)
        return found.minimum(last)
    noise = make_rand(*self.shape, dtype=dtypes.float32, device=self.device)
    keys = -(-noise).log1p() / weights  # infinite for a weight of 0
    return positions_in_order(keys, num_samples)


@takes_generator
def uniform(
    cls: type[Tensor],
    /,
    *shape: Any,
    low: float = 0.0,
    high: float = 1.0,
    dtype: DTypeLike = None,
    **kwargs: Any,
) -> Tensor:
    """Draw numbers from `low` to below `high`, all alike.

    The dtype is the default float, or what dtype= says. NumPy: random.uniform.

    >>> from weft.tensor import Tensor
    >>> Tensor.uniform(2, 3, low=-1.0).shape
    (2, 3)
    """
    if shape and isinstance(shape[0], cls):  # x.uniform(low, high), in the shape of a tensor
        like, *limits = shape
        low, high = (*limits, *(low, high)[len(limits) :])  # type: ignore[misc]
        shape, dtype = like.shape, dtype or like.dtype
    target = dtype_of(dtype, dtypes.default_float)
    inner = target if target.is_float else dtypes.float32
    sizes, device, _, requires_grad = _plan("uniform", shape, kwargs)
    node = _drawn(sizes, device, _unit, inner) * (high - low) + low
    return _made(cls, node.cast(target), device, requires_grad)


@takes_generator
def normal(
    cls: type[Tensor], /, *shape: Any, mean: float = 0.0, std: float = 1.0, **kwargs: Any
) -> Tensor:
    """Draw floats of the normal distribution with this mean and deviation.

    The dtype is the default float, or what dtype= says. PyTorch: normal; NumPy: random.normal.

    >>> from weft.tensor import Tensor
    >>> Tensor.normal(2, 3, mean=1.0).shape
    (2, 3)
    """
    requires_grad = kwargs.pop("requires_grad", None)
    if "size" in kwargs or any(
        isinstance(each, (cls, float)) for each in shape
    ) or isinstance(mean, cls) or isinstance(std, cls):  # fmt: skip
        return _normal_around(cls, shape, mean, std, kwargs)
    value = cls.randn(*shape, **kwargs) * std + mean
    return remember(value, requires_grad)


def _normal_around(
    cls: type[Tensor], given: tuple[Any, ...], mean: Any, std: Any, kwargs: dict[str, Any]
) -> Tensor:
    """PyTorch's `normal(mean, std)` of tensors or numbers, and `normal(mean, std, size)`."""
    size = kwargs.pop("size", None)
    values = list(given)
    if values and isinstance(values[-1], (tuple, list)):
        size = values.pop()
    if len(values) == 3:  # in the shape of a tensor
        like = values.pop(0)
        size, kwargs = like.shape, {"dtype": like.dtype, **kwargs}
    mean, std = (*values, *(mean, std)[len(values) :])
    tensors = [each for each in (mean, std) if isinstance(each, cls)]
    if size is None:
        size = (tensors[0] + tensors[-1]).shape if tensors else ()
    dtype = kwargs.pop("dtype", None) or (tensors[0].dtype if tensors else None)
    return cls.randn(*size, dtype=dtype, **kwargs) * std + mean  # type: ignore[no-any-return]


def _scaled(cls: type[Tensor], limit: float, shape: tuple[Any, ...], kwargs: Any) -> Tensor:
    return cls.uniform(*shape, low=-limit, high=limit, **kwargs)


def _sizes(name: str, shape: tuple[Any, ...]) -> list[int]:
    sizes = [known(size) for size in (ints_of(name, shape[0], shape[1:]) if shape else ())]
    if not sizes:
        raise ArgumentError(
            f"{name}: expected a shape, got none", rule=f"{name} needs at least one axis"
        )
    return sizes


def scaled_uniform(cls: type[Tensor], /, *shape: Any, **kwargs: Any) -> Tensor:
    """Draw from -1 to 1 over the square root of the number of elements.

    The dtype is the default float, or what dtype= says.

    >>> from weft.tensor import Tensor
    >>> Tensor.scaled_uniform(2, 3).shape
    (2, 3)
    """
    count = math.prod(_sizes("scaled_uniform", shape))
    return _scaled(cls, max(count, 1) ** -0.5, shape, kwargs)


def glorot_uniform(cls: type[Tensor], /, *shape: Any, **kwargs: Any) -> Tensor:
    """Draw weights whose variance fits the sum of inputs and outputs (Glorot and Bengio).

    The dtype is the default float, or what dtype= says. PyTorch: nn.init.xavier_uniform_.

    >>> from weft.tensor import Tensor
    >>> Tensor.glorot_uniform(2, 3).shape
    (2, 3)
    """
    sizes = _sizes("glorot_uniform", shape)
    return _scaled(cls, math.sqrt(6 / max(sizes[0] + math.prod(sizes[1:]), 1)), shape, kwargs)


def kaiming_uniform(cls: type[Tensor], /, *shape: Any, a: float = 0.01, **kwargs: Any) -> Tensor:
    """Draw weights whose variance fits the inputs and a leaky relu of slope `a` (He et al.).

    The dtype is the default float, or what dtype= says. PyTorch: nn.init.kaiming_uniform_.

    >>> from weft.tensor import Tensor
    >>> Tensor.kaiming_uniform(2, 3).shape
    (2, 3)
    """
    fan = max(math.prod(_sizes("kaiming_uniform", shape)[1:]), 1)
    return _scaled(cls, math.sqrt(3 * 2 / (1 + a * a) / fan), shape, kwargs)


def kaiming_normal(cls: type[Tensor], /, *shape: Any, a: float = 0.01, **kwargs: Any) -> Tensor:
    """Draw normal weights whose variance fits the inputs and a leaky relu of slope `a`.

    The dtype is the default float, or what dtype= says. PyTorch: nn.init.kaiming_normal_.

    >>> from weft.tensor import Tensor
    >>> Tensor.kaiming_normal(2, 3).shape
    (2, 3)
    """
    fan = max(math.prod(_sizes("kaiming_normal", shape)[1:]), 1)
    return cls.normal(*shape, mean=0.0, std=math.sqrt(2 / (1 + a * a) / fan), **kwargs)


@takes_generator
def rand_like(self: Tensor, **kwargs: Any) -> Tensor:
    """Draw floats from 0 to below 1 in this tensor's shape.

    The shape, dtype and device are this tensor's, unless they are given. PyTorch: rand_like.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0]).rand_like().shape
    (1,)
    """
    given = {"dtype": self.dtype, "device": self.device, **kwargs}
    drawn = self.__class__.rand(*self.shape, **given)
    return drawn if "device" in kwargs else drawn.shard_like(self)


@takes_generator
def randn_like(self: Tensor, dtype: DTypeLike = None, **kwargs: Any) -> Tensor:
    """Draw normal floats in this tensor's shape.

    The shape, dtype and device are this tensor's, unless they are given. PyTorch: randn_like.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0]).randn_like().shape
    (1,)
    """
    given = {"device": self.device, **kwargs}
    drawn = self.__class__.randn(*self.shape, dtype=dtype_of(dtype, self.dtype), **given)
    return drawn if "device" in kwargs else drawn.shard_like(self)


def dropout(self: Tensor, p: float = 0.5, training: bool | None = None) -> Tensor:
    """Zero elements with probability `p` and divide the others by 1 - p.

    That is so while `Tensor.training` is set, or as `training` says; else the tensor is returned
    as it is. PyTorch: nn.functional.dropout, which trains unless it is told otherwise.

    >>> from weft.tensor import Tensor
    >>> x = Tensor.ones(100)
    >>> x.dropout(0.5) is x, sorted(set(x.dropout(0.5, training=True).tolist()))
    (True, [0.0, 2.0])
    """
    if not 0 <= p <= 1:
        raise ArgumentError(f"dropout: p is {p}", rule="a probability is from 0 to 1")
    is_training = self.__class__.training if training is None else training
    if not is_training or p == 0:
        return self
    if p == 1:
        return self.zeros_like()
    kept = self.__class__.rand(*self.shape, dtype=dtypes.float32, device=self.device) >= p
    return kept.where(self, 0) / (1 - p)
