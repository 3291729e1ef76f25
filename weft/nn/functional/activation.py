"""Activations with the arguments of torch.nn.functional; `inplace` writes to the input."""

from __future__ import annotations

from typing import Any

from weft.nn.functional.common import written
from weft.support.errors import ArgumentError
from weft.tensor.tensor import Tensor


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where it is above a threshold, a value elsewhere."""
    return written(input, input.threshold(threshold, value), inplace, "threshold")


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0)."""
    return written(input, input.relu(), inplace, "relu")


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6)."""
    return written(input, input.relu6(), inplace, "relu6")


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x above 0, alpha (exp(x) - 1) below."""
    return written(input, input.elu(alpha), inplace, "elu")


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x above 0, alpha (exp(x / alpha) - 1) below."""
    return written(input, input.celu(alpha), inplace, "celu")


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """The elu that keeps mean 0 and variance 1."""
    result = input.selu(1.6732632423543772848170429916717, 1.0507009873554804934193349852946)
    return written(input, result, inplace, "selu")


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x, scaled below 0."""
    return written(input, input.leaky_relu(negative_slope), inplace, "leaky_relu")


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x, scaled below 0 by a weight of its own for each channel."""
    return input.prelu(weight)


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """x, scaled below 0: by random numbers in training, by their mean otherwise."""
    if training:
        slope = Tensor.uniform(
            *input.shape, low=lower, high=upper, dtype=input.dtype, device=input.device
        )
        result = (input < 0).where(input * slope, input)
    else:
        result = input.leaky_relu((lower + upper) / 2)
    return written(input, result, inplace, "rrelu")


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half times the sigmoid of the second."""
    return input.glu(dim)


def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x))."""
    return input.logsigmoid()


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x outside of ±lambd, 0 inside."""
    return input.hardshrink(lambd)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved by lambd towards 0."""
    return input.softshrink(lambd)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return input.tanhshrink()


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return input.softsign()


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta x)) / beta; x itself where beta x is above the threshold."""
    return input.softplus(beta, threshold)


def _axis(dim: int | None, rank: int) -> int:
    """The axis that PyTorch takes where none is named."""
    return (0 if rank in (0, 1, 3) else 1) if dim is None else dim


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """exp(x) / Σ exp(x) along an axis."""
    return input.softmax(_axis(dim, input.ndim), dtype)


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """The softmax of -x."""
    return input.softmin(_axis(dim, input.ndim), dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """The logarithm of softmax."""
    return input.log_softmax(_axis(dim, input.ndim), dtype)


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A softmax of scores with Gumbel noise; `hard` samples one-hot, with the soft gradient."""
    noise = -(-logits.rand_like().clamp(min_=1e-30).log()).clamp(min_=1e-30).log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    one = soft.argmax(dim).one_hot(int(soft.shape[dim])).cast(soft.dtype).movedim(-1, dim)
    return (one - soft).detach() + soft


def tanh(input: Tensor) -> Tensor:
    """tanh(x)."""
    return input.tanh()


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return input.sigmoid()


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """x / 6 + 1 / 2, clamped to 0 … 1."""
    return written(input, input.hardsigmoid(), inplace, "hardsigmoid")


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x sigmoid(x)."""
    return written(input, input.silu(), inplace, "silu")


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x tanh(softplus(x))."""
    return written(input, input.mish(), inplace, "mish")


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x relu6(x + 3) / 6."""
    return written(input, input.hardswish(), inplace, "hardswish")


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """x, clamped."""
    if min_val > max_val:
        raise ArgumentError(f"hardtanh: min_val {min_val} is above max_val {max_val}")
    return written(input, input.hardtanh(min_val, max_val), inplace, "hardtanh")


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x Φ(x), by erf or, with approximate="tanh", by tanh."""
    return input.gelu(approximate)


def _in_place(function: Any) -> Any:
    """The function that writes its result to its input."""

    def written_(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return function(input, *args, inplace=True, **kwargs)  # type: ignore[no-any-return]

    written_.__name__ = function.__name__ + "_"
    written_.__doc__ = f"`{function.__name__}`, written to its input."
    return written_


relu_, leaky_relu_, elu_ = _in_place(relu), _in_place(leaky_relu), _in_place(elu)
celu_, selu_, threshold_ = _in_place(celu), _in_place(selu), _in_place(threshold)
hardtanh_, rrelu_ = _in_place(hardtanh), _in_place(rrelu)
