"""The Llama architecture, from a GGUF file: one token at a time, with a cache of keys and values.

Weights stay packed in memory and are unpacked inside of the kernels that use them. The position is
a symbolic size: one trace serves all positions, and each attends to the part of the cache that is
filled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from weft.ir.build import variable
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.walk import substitute, topological
from weft.support.errors import ArgumentError, FileFormatError
from weft.tensor.core import realize_all
from weft.tensor.jit import jit
from weft.tensor.tensor import Tensor


class LlamaConfig(NamedTuple):
    """The sizes of a model."""

    layers: int
    width: int
    heads: int
    groups: int  # heads of keys and values; several heads of queries share one
    head_size: int
    context: int
    rope_base: float
    epsilon: float

    @staticmethod
    def from_gguf(metadata: Mapping[str, Any], context: int = 0) -> LlamaConfig:
        """The sizes that a GGUF file states; `context` limits the number of positions."""
        name = metadata.get("general.architecture")
        if name != "llama":
            raise FileFormatError(
                f"llama: the file holds a model of architecture {name!r}",
                law="the architecture that is run is 'llama'",
            )

        def value(key: str, default: Any = None) -> Any:
            found = metadata.get(f"llama.{key}", default)
            if not isinstance(found, (int, float)) or isinstance(found, bool) or found <= 0:
                raise FileFormatError(f"llama: the metadata has no llama.{key}")
            return found

        heads, width = value("attention.head_count"), value("embedding_length")
        longest = value("context_length")
        return LlamaConfig(
            layers=value("block_count"),
            width=width,
            heads=heads,
            groups=value("attention.head_count_kv", heads),
            head_size=value("rope.dimension_count", width // heads),
            context=min(context or longest, longest),
            rope_base=value("rope.freq_base", 10000.0),
            epsilon=value("attention.layer_norm_rms_epsilon", 1e-5),
        )


class Llama:
    """A model with its cache. `step` takes a token and its position and gives logits.

    `position` is the variable to bind the position to.
    """

    def __init__(self, config: LlamaConfig, weights: Mapping[str, Tensor]) -> None:
        self.config = config
        self._weights = _resident(weights)
        if "token_embd.weight" not in self._weights:
            raise FileFormatError("llama: there is no token_embd.weight among the tensors")
        shape = (config.groups, config.context, config.head_size)
        self.keys = [Tensor.zeros(*shape).contiguous() for _ in range(config.layers)]
        self.values = [Tensor.zeros(*shape).contiguous() for _ in range(config.layers)]
        self.position = variable("position", 0, config.context - 1)
        self.cosines, self.sines = (Tensor(table) for table in rope_tables(config))
        realize_all([*self.keys, *self.values])

    def weight(self, name: str) -> Tensor:
        found = self._weights.get(name)
        if found is None:
            raise FileFormatError(f"llama: there is no tensor {name!r}")
        return Tensor(found)

    @jit
    def step(self, token: Tensor, position: UOp) -> Tensor:
        """The logits (vocabulary,) after a token; its keys and values are added to the cache.

        The token is a scalar integer tensor, the position `self.position` bound to its value.
        """
        x = self.weight("token_embd.weight")[token]  # (width,)
        angles = self.cosines[position], self.sines[position]  # (head_size / 2, 1) each
        for layer in range(self.config.layers):
            x = self._layer(layer, x, position, angles)
        x = self._norm(x, "output_norm.weight")
        has_head = "output.weight" in self._weights
        return self.weight("output.weight" if has_head else "token_embd.weight") @ x

    @jit
    def next_token(self, token: Tensor, position: UOp) -> Tensor:
        """The most likely token after a token, in the form that `step` takes."""
        return self.step(token, position).argmax().cast(token.dtype)

    def _layer(self, n: int, x: Tensor, position: UOp, angles: tuple[Tensor, Tensor]) -> Tensor:
        h = self._norm(x, f"blk.{n}.attn_norm.weight")
        x = x + self.weight(f"blk.{n}.attn_output.weight") @ self._attend(n, h, position, angles)
        h = self._norm(x, f"blk.{n}.ffn_norm.weight")
        gate = (self.weight(f"blk.{n}.ffn_gate.weight") @ h).silu()
        inner = gate * (self.weight(f"blk.{n}.ffn_up.weight") @ h)
        return (x + self.weight(f"blk.{n}.ffn_down.weight") @ inner).contiguous()

    def _attend(self, n: int, h: Tensor, position: UOp, angles: tuple[Tensor, Tensor]) -> Tensor:
        c = self.config
        q = rotated((self.weight(f"blk.{n}.attn_q.weight") @ h).reshape(c.heads, -1), *angles)
        k = rotated((self.weight(f"blk.{n}.attn_k.weight") @ h).reshape(c.groups, -1), *angles)
        v = (self.weight(f"blk.{n}.attn_v.weight") @ h).reshape(c.groups, -1)
        self.keys[n][:, position] = k
        self.values[n][:, position] = v
        q = q.reshape(c.groups, c.heads // c.groups, c.head_size)
        keys, values = self.keys[n][:, : position + 1], self.values[n][:, : position + 1]
        return q.scaled_dot_product_attention(keys, values).flatten()

    def _norm(self, x: Tensor, name: str) -> Tensor:
        scale = (x.square().mean() + self.config.epsilon).rsqrt()
        return x * scale * self.weight(name)


def rotated(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Rotary positions: neighbors (a, b) become (a cos - b sin, b cos + a sin)."""
    pairs = x.reshape(x.shape[0], -1, 2)
    sign = Tensor.arange(2) * 2 - 1  # -1 for the first of a pair, 1 for the second
    return (pairs * cosines + pairs.flip(-1) * sines * sign).reshape(x.shape)


def rope_tables(config: LlamaConfig) -> tuple[Any, Any]:
    """Cosines and sines (context, head_size / 2, 1) of all positions."""
    powers = np.arange(0, config.head_size, 2) / config.head_size
    angles = np.arange(config.context)[:, None, None] * (config.rope_base**-powers)[:, None]
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def _resident(weights: Mapping[str, Tensor]) -> dict[str, UOp]:
    """The graphs of the weights, with the bytes of files in memory, as packed as they were.

    Nodes, not tensors: what is no tensor is not waiting to be computed.
    """
    graphs = {name: weight.uop for name, weight in weights.items()}
    copies = [node for node in topological(*graphs.values()) if node.op == Op.COPY]
    brought = [Tensor(node) for node in copies]
    realize_all(brought)
    made = {node: tensor.uop for node, tensor in zip(copies, brought, strict=True)}
    return {name: substitute(graph, made) for name, graph in graphs.items()}


def generate(
    model: Llama, prompt: Iterable[int], count: int, stop: Iterable[int] = ()
) -> Iterable[int]:
    """The most likely tokens after a prompt, one by one, until one of `stop` or `count`."""
    prompt, ends = list(prompt), set(stop)
    if not prompt or len(prompt) + count > model.config.context:
        raise ArgumentError(
            f"generate: {len(prompt)} tokens and {count} more do not fit the context",
            law=f"a prompt has a token, and all fit {model.config.context} positions",
        )
    following = None
    for place in range(len(prompt) + count - 1):
        token = _scalar(prompt[place]) if following is None else following
        found = model.next_token(token, model.position.bind(place))
        if place + 1 < len(prompt):
            continue
        if (answer := int(found.item())) in ends:
            return
        yield answer
        following = found


def _scalar(value: int) -> Tensor:
    """A number in memory, so that steps with other numbers are the same graph."""
    return Tensor(np.array(value, np.int32), dtype=dtypes.int32)
