"""One operand: functions of numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from weft.onnx.table import op
from weft.tensor.tensor import Tensor

# Operators that are a method of a tensor, without attributes.
_METHODS: Final[dict[str, Callable[[Tensor], Tensor]]] = {
    "Abs": lambda x: x if x.dtype.is_unsigned else x.abs(),
    "Acos": lambda x: x.acos(),
    "Acosh": lambda x: x.acosh(),
    "Asin": lambda x: x.asin(),
    "Asinh": lambda x: x.asinh(),
    "Atan": lambda x: x.atan(),
    "Atanh": lambda x: x.atanh(),
    "BitwiseNot": lambda x: x.bitwise_not(),
    "Ceil": lambda x: x.ceil(),
    "Cos": lambda x: x.cos(),
    "Cosh": lambda x: x.cosh(),
    "Erf": lambda x: x.erf(),
    "Exp": lambda x: x.exp(),
    "Floor": lambda x: x.floor(),
    "IsNaN": lambda x: x.isnan(),
    "Log": lambda x: x.log(),
    "Neg": lambda x: -x,
    "Not": lambda x: x.logical_not(),
    "Reciprocal": lambda x: x.reciprocal(),
    "Round": lambda x: x.round(),
    "Sign": lambda x: (x != x).where(x, x.sign()) if x.dtype.is_float else x.sign(),
    "Sin": lambda x: x.sin(),
    "Sinh": lambda x: x.sinh(),
    "Sqrt": lambda x: x.sqrt(),
    "Tan": lambda x: x.tan(),
    "Tanh": lambda x: x.tanh(),
    # Activations without attributes.
    "HardSwish": lambda x: x.hardswish(),
    "Mish": lambda x: x.mish(),
    "Relu": lambda x: x.relu(),
    "Sigmoid": lambda x: x.sigmoid(),
    "Softplus": lambda x: x.softplus(),
    "Softsign": lambda x: x.softsign(),
}


def _enter(name: str, function: Callable[[Tensor], Tensor]) -> None:
    @op(name)
    def computed(call: Any, x: Tensor) -> Tensor:
        return function(x)


for _name, _function in _METHODS.items():
    _enter(_name, _function)


@op("IsInf")
def is_inf(call: Any, x: Tensor) -> Tensor:
    return x.isinf(bool(call.get("detect_positive", 1)), bool(call.get("detect_negative", 1)))


@op("Identity", raw=True)
def identity(call: Any, x: Any) -> Any:
    return x


@op("Elu")
def elu(call: Any, x: Tensor) -> Tensor:
    return x.elu(call.get("alpha", 1.0))


@op("Celu")
def celu(call: Any, x: Tensor) -> Tensor:
    return x.celu(call.get("alpha", 1.0))


@op("Selu")
def selu(call: Any, x: Tensor) -> Tensor:
    alpha = call.get("alpha", 1.67326319217681884765625)
    gamma = call.get("gamma", 1.05070102214813232421875)
    return x.selu(alpha, gamma)


@op("Gelu")
def gelu(call: Any, x: Tensor) -> Tensor:
    return x.gelu(call.get("approximate", "none"))


@op("HardSigmoid")
def hard_sigmoid(call: Any, x: Tensor) -> Tensor:
    return (x * call.get("alpha", 0.2) + call.get("beta", 0.5)).clamp(0, 1)


@op("LeakyRelu")
def leaky_relu(call: Any, x: Tensor) -> Tensor:
    return (x < 0).where(x * call.get("alpha", 0.01), x)


@op("ThresholdedRelu")
def thresholded_relu(call: Any, x: Tensor) -> Tensor:
    return (x > call.get("alpha", 1.0)).where(x, 0)


@op("Shrink")
def shrink(call: Any, x: Tensor) -> Tensor:
    bias, limit = call.get("bias", 0.0), call.get("lambd", 0.5)
    shrunk = (x > limit).where(x - bias, 0)
    return (x < -limit).where(x + bias, shrunk).cast(x.dtype)


@op("Swish")
def swish(call: Any, x: Tensor) -> Tensor:
    return x * (x * call.get("alpha", 1.0)).sigmoid()


@op("SwiGLU")
def swiglu(call: Any, gate: Tensor, x: Tensor) -> Tensor:
    return gate * (gate * call.get("alpha", 1.0)).sigmoid() * x
