"""Products with weights, and the dense part of a layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.llm.model.config import Activation
from weft.tensor.tensor import Tensor

if TYPE_CHECKING:
    from weft.llm.weights.layer import LayerWeights


def activated(kind: Activation, x: Tensor) -> Tensor:
    """The activation of an architecture.

    >>> from weft.tensor import Tensor
    >>> activated("relu", Tensor([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    if kind == "silu":
        return x.silu()
    if kind == "relu":
        return x.relu()
    return x.gelu(approximate="tanh" if kind == "gelu_tanh" else "none")


def linear(x: Tensor, layer: LayerWeights, name: str) -> Tensor:
    """x (..., in) times the weight `name` (out, in), plus its bias where the file has one."""
    product: Tensor = x @ layer[f"{name}.weight"].T
    bias = layer.get(f"{name}.bias")
    return product if bias is None else product + bias


def mlp(x: Tensor, layer: LayerWeights, kind: Activation, suffix: str = "") -> Tensor:
    """down(act(gate(x)) * up(x)); without a gate of its own, `up` has both, or there is none."""
    if f"ffn_gate{suffix}.weight" in layer:
        inner = activated(kind, linear(x, layer, f"ffn_gate{suffix}"))
        inner = inner * linear(x, layer, f"ffn_up{suffix}")
    else:
        inner = linear(x, layer, f"ffn_up{suffix}")
        wanted = int(layer[f"ffn_down{suffix}.weight"].shape[-1])
        if int(inner.shape[-1]) == 2 * wanted:
            inner = activated(kind, inner[..., :wanted]) * inner[..., wanted:]
        else:
            inner = activated(kind, inner)
    return linear(inner, layer, f"ffn_down{suffix}")
