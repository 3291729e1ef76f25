"""First values, written to tensors in place: the names of torch.nn.init."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.support.errors import ArgumentError
from weft.support.module_names import missing_name
from weft.tensor.create.generator import takes_generator
from weft.tensor.tensor import Tensor

_GAINS = {"linear": 1.0, "sigmoid": 1.0, "tanh": 5.0 / 3, "relu": math.sqrt(2), "selu": 0.75}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """By what a layer's weights are scaled before an activation."""
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return math.sqrt(2 / (1 + slope**2))
    if nonlinearity.startswith("conv"):
        return 1.0
    if nonlinearity not in _GAINS:
        raise ArgumentError(
            f"calculate_gain: unknown nonlinearity {nonlinearity!r}",
            rule="it is leaky_relu, conv…, " + ", ".join(_GAINS),
        )
    return _GAINS[nonlinearity]


def _fans(tensor: Tensor) -> tuple[int, int]:
    """How many numbers come in and go out of each element."""
    if tensor.ndim < 2:
        raise ArgumentError(
            f"init: a tensor with {tensor.ndim} axes", rule="fans need two axes or more"
        )
    taps = math.prod(int(size) for size in tensor.shape[2:])
    return int(tensor.shape[1]) * taps, int(tensor.shape[0]) * taps


def _written(tensor: Tensor, value: Tensor) -> Tensor:
    return tensor.assign(value.detach().cast(tensor.dtype))


@takes_generator
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Numbers between two."""
    drawn = Tensor.uniform(*tensor.shape, low=a, high=b, device=tensor.device)
    return _written(tensor, drawn)


@takes_generator
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Numbers of a normal distribution."""
    drawn = Tensor.normal(*tensor.shape, mean=mean, std=std, device=tensor.device)
    return _written(tensor, drawn)


@takes_generator
def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Tensor:
    """Numbers of a normal distribution, cut off at two bounds."""
    low, high = (0.5 * (1 + math.erf((each - mean) / std / math.sqrt(2))) for each in (a, b))
    share = Tensor.uniform(*tensor.shape, low=2 * low - 1, high=2 * high - 1, device=tensor.device)
    value = share.erfinv() * (std * math.sqrt(2)) + mean
    return _written(tensor, value.clamp(a, b))


def constant_(tensor: Tensor, val: float) -> Tensor:
    """One value everywhere."""
    return _written(tensor, tensor.full_like(val))


def ones_(tensor: Tensor) -> Tensor:
    """Ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros."""
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """The identity."""
    rows, columns = map(int, tensor.shape)
    return _written(tensor, Tensor.eye(rows, columns, device=tensor.device))


@takes_generator
def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Glorot and Bengio's bounds."""
    inputs, outputs = _fans(tensor)
    bound = gain * math.sqrt(6 / max(inputs + outputs, 1))
    return uniform_(tensor, -bound, bound)


@takes_generator
def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Glorot and Bengio's deviation."""
    inputs, outputs = _fans(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2 / max(inputs + outputs, 1)))


def _he(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ArgumentError(f"kaiming: mode is {mode!r}", rule='it is "fan_in" or "fan_out"')
    fan = _fans(tensor)[0 if mode == "fan_in" else 1]
    return calculate_gain(nonlinearity, a) / math.sqrt(max(fan, 1))


@takes_generator
def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """He's bounds."""
    bound = math.sqrt(3) * _he(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound)


@takes_generator
def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """He's deviation."""
    return normal_(tensor, 0.0, _he(tensor, a, mode, nonlinearity))


@takes_generator
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Rows, or columns, that are orthonormal, times a gain."""
    rows = int(tensor.shape[0])
    columns = int(tensor.numel()) // max(rows, 1)
    drawn = Tensor.randn(max(rows, columns), min(rows, columns), device=tensor.device)
    q, r = drawn.qr()
    q = q * r.diagonal().sign()
    q = q.transpose(0, 1) if rows < columns else q
    return _written(tensor, q.reshape(tensor.shape) * gain)


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """A kernel that keeps its input: one in the middle, for as many channels as there are."""
    sizes = [int(size) for size in tensor.shape]
    if len(sizes) not in (3, 4, 5) or sizes[0] % groups:
        raise ArgumentError(
            f"dirac_: a tensor of shape {tensor.shape} in {groups} groups",
            rule="a kernel has 3 to 5 axes, and groups divides the first",
        )
    value = np.zeros(sizes, np.float32)
    outputs = sizes[0] // groups
    middle = tuple(size // 2 for size in sizes[2:])
    for group in range(groups):
        for channel in range(min(outputs, sizes[1])):
            value[(group * outputs + channel, channel, *middle)] = 1
    return _written(tensor, Tensor(value, device=tensor.device))


@takes_generator
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Normal numbers, with this part of each column set to 0."""
    if tensor.ndim != 2:
        raise ArgumentError(f"sparse_: a tensor with {tensor.ndim} axes", rule="it has two")
    rows = int(tensor.shape[0])
    noise = Tensor.rand(*tensor.shape, device=tensor.device)
    drawn = Tensor.normal(*tensor.shape, std=std, device=tensor.device)
    rank = noise.argsort(0).argsort(0)
    return _written(tensor, (rank < math.ceil(sparsity * rows)).where(0.0, drawn))


__getattr__ = missing_name(__name__)
