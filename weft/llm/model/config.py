"""The facts of a model: sizes, and what its architecture does at each layer.

A `Config` says all that the parts of a model ask. What a file shows by its tensors (biases, norms
of queries and keys, a head of its own, experts) is not here: the parts look for the tensor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Activation = Literal["silu", "gelu", "gelu_tanh", "relu"]
Scaling = Literal["none", "linear", "ntk", "yarn", "llama3", "longrope"]
Gate = Literal["softmax", "sigmoid", "softmax_chosen"]


@dataclass(frozen=True)
class Rope:
    """Rotary positions: `size` elements of a head are rotated, the others stay."""

    base: float = 10000.0
    size: int = 0
    interleaved: bool = False  # pairs are neighbors; else they are half a head apart
    scaling: Scaling = "none"
    factor: float = 1.0
    original_context: int = 0
    low_factor: float = 1.0  # llama3: wavelengths between the two are interpolated
    high_factor: float = 4.0
    fast: float = 32.0  # yarn: rotations within the original context
    slow: float = 1.0
    magnitude: float = 0.0  # of queries and keys; 0 is what the scaling asks for
    short_factors: tuple[float, ...] = ()  # longrope, per frequency
    long_factors: tuple[float, ...] = ()


@dataclass(frozen=True)
class Experts:
    """Of `count` experts, a token goes to `used`."""

    count: int
    used: int
    gate: Gate = "softmax"
    is_normalized: bool = True  # the weights of the chosen sum to 1
    scale: float = 1.0
    groups: int = 1  # experts are chosen from the best groups alone
    groups_used: int = 1


@dataclass(frozen=True)
class Config:
    """The facts of a model; `windows` has a number for each layer, 0 where all is attended to."""

    architecture: str
    layers: int
    width: int
    heads: int
    kv_heads: int
    head_size: int
    context: int
    epsilon: float
    rope: Rope
    windows: tuple[int, ...]
    window_rope: Rope | None = None  # of layers with a window, where it is another
    unrotated: frozenset[int] = frozenset()  # layers without positions
    activation: Activation = "silu"
    norm: Literal["rms", "layer"] = "rms"
    query_scale: float = 0.0  # 0 is one over the root of head_size
    attention_softcap: float = 0.0
    logit_softcap: float = 0.0
    embedding_scale: float = 1.0
    residual_scale: float = 1.0
    logit_scale: float = 1.0
    experts: Experts | None = None

    @property
    def attention_scale(self) -> float:
        return self.query_scale or float(self.head_size**-0.5)

    def rope_of(self, layer: int) -> Rope | None:
        """The positions of a layer, if it has any."""
        if layer in self.unrotated:
            return None
        return self.window_rope if self.windows[layer] and self.window_rope else self.rope

    def spans(self) -> tuple[int, ...]:
        """The windows that layers have, each once: what shares a page table."""
        return tuple(sorted(set(self.windows)))
