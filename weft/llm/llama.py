"""The Llama architecture, from a GGUF file, with a cache of keys and values.

A prompt is read in pieces of some tokens, an answer is made token by token. Weights stay packed in
memory: a step unpacks them inside of the kernels that use them, a piece of a prompt one by one,
just before they are used. The position is a symbolic size: one trace serves all positions, and
each attends to the part of the cache that is filled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from weft.ir.build import variable
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.walk import substitute, topological
from weft.support.errors import ArgumentError, FileFormatError
from weft.tensor.core import realize_all
from weft.tensor.jit.jit import jit
from weft.tensor.tensor import Tensor

# Tokens of a prompt that are read at once, and how few are read sooner one by one.
CHUNK: Final = 32
FEW: Final = 4


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
    """A model with its cache of keys and values.

    `read` takes the tokens of a prompt, `step` one token, each with the position of the first,
    and `position` is the variable to bind that to.
    """

    def __init__(self, config: LlamaConfig, weights: Mapping[str, Tensor]) -> None:
        self.config = config
        self._weights = _resident(weights)
        if "token_embd.weight" not in self._weights:
            raise FileFormatError("llama: there is no token_embd.weight among the tensors")
        shape = (config.groups, config.context + CHUNK, config.head_size)
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
    def read(self, tokens: Tensor, position: UOp) -> None:
        """Add the keys and values of the next tokens to the cache, all at once.

        The tokens are an integer tensor (time,), the position is that of the first.
        """
        self._hidden(tokens, position)

    @jit
    def step(self, token: Tensor, position: UOp) -> Tensor:
        """The logits (vocabulary,) after a token; its keys and values are added to the cache.

        The token is a scalar integer tensor, the position `self.position` bound to its value.
        """
        x = self._norm(self._hidden(token.reshape(1), position), "output_norm.weight")
        has_head = "output.weight" in self._weights
        return self._linear(x, "output.weight" if has_head else "token_embd.weight").flatten()

    @jit
    def next_token(self, token: Tensor, position: UOp) -> Tensor:
        """The most likely token after a token, in the form that `step` takes."""
        return self.step(token, position).argmax().cast(token.dtype)

    def _hidden(self, tokens: Tensor, position: UOp) -> Tensor:
        """What the layers make of tokens (time,): (time, width)."""
        x = self.weight("token_embd.weight")[tokens]
        places = slice(position, position + tokens.shape[0])
        angles = self.cosines[places], self.sines[places]  # (time, 1, head_size / 2, 1) each
        for layer in range(self.config.layers):
            x = self._layer(layer, x, places, angles)
        return x

    def _layer(self, n: int, x: Tensor, places: slice, angles: tuple[Tensor, Tensor]) -> Tensor:
        h = self._norm(x, f"blk.{n}.attn_norm.weight")
        x = x + self._linear(self._attend(n, h, places, angles), f"blk.{n}.attn_output.weight")
        h = self._norm(x, f"blk.{n}.ffn_norm.weight")
        inner = self._linear(h, f"blk.{n}.ffn_gate.weight").silu()
        inner = inner * self._linear(h, f"blk.{n}.ffn_up.weight")
        return (x + self._linear(inner, f"blk.{n}.ffn_down.weight")).contiguous()

    def _attend(self, n: int, h: Tensor, places: slice, angles: tuple[Tensor, Tensor]) -> Tensor:
        c, time = self.config, h.shape[0]
        q, k, v = (
            self._linear(h, f"blk.{n}.attn_{part}.weight").reshape(time, -1, c.head_size)
            for part in "qkv"
        )
        self.keys[n][:, places] = rotated(k, *angles).transpose(0, 1)
        self.values[n][:, places] = v.transpose(0, 1)
        q = rotated(q, *angles).transpose(0, 1)  # (heads, time, head_size)
        q = q.reshape(c.groups, c.heads // c.groups, time, c.head_size)
        keys, values = self.keys[n][:, : places.stop], self.values[n][:, : places.stop]
        mixed = q.scaled_dot_product_attention(
            keys.unsqueeze(1), values.unsqueeze(1), _causal(places)
        )
        return mixed.permute(2, 0, 1, 3).reshape(time, -1)

    def _linear(self, x: Tensor, name: str) -> Tensor:
        """x (time, in) times a weight (out, in)."""
        product: Tensor = x @ self.weight(name).T
        return product

    def _norm(self, x: Tensor, name: str) -> Tensor:
        scale = (x.square().mean(-1, keepdim=True) + self.config.epsilon).rsqrt()
        return x * scale * self.weight(name)


def _causal(places: slice) -> Tensor:
    """Which places (own, all) each may attend to: those up to its own."""
    own = Tensor.arange(places.start, places.stop).unsqueeze(-1)
    allowed: Tensor = Tensor.arange(places.stop) <= own
    return allowed


def rotated(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Rotary positions: neighbors (a, b) become (a cos - b sin, b cos + a sin)."""
    pairs = x.unflatten(-1, (-1, 2))  # (time, heads, head_size / 2, 2)
    sign = Tensor.arange(2) * 2 - 1  # -1 for the first of a pair, 1 for the second
    return (pairs * cosines + pairs.flip(-1) * sines * sign).reshape(x.shape)


def rope_tables(config: LlamaConfig) -> tuple[Any, Any]:
    """Cosines and sines (positions, 1, head_size / 2, 1) of all positions."""
    powers = np.arange(0, config.head_size, 2) / config.head_size
    positions = np.arange(config.context + CHUNK)[:, None, None, None]
    angles = positions * (config.rope_base**-powers)[:, None]
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
    model: Llama, prompt: Iterable[int], count: int, stop: Iterable[int] = (), start: int = 0
) -> Iterable[int]:
    """The most likely tokens after a prompt, one by one, until one of `stop` or `count`.

    `start` is the position of the prompt; what the model has read before it stays in mind. The
    token that was found last, one of `stop` too, is not read yet: a prompt that goes on after an
    answer begins with it.
    """
    prompt, ends = list(prompt), set(stop)
    if not prompt or start < 0 or start + len(prompt) + count > model.config.context:
        raise ArgumentError(
            f"generate: {len(prompt)} tokens from {start} and {count} more do not fit the context",
            law=f"a prompt has a token, and all fit {model.config.context} positions",
        )
    known, done = len(prompt) - 1, 0
    while known - done > FEW:
        piece = prompt[done : min(done + CHUNK, known)]
        model.read(_padded(piece), model.position.bind(start + done))
        done += len(piece)
    token = _scalar(prompt[done])
    for place in range(done, known + count):
        token = model.next_token(token, model.position.bind(start + place))
        if place < known:
            token = _scalar(prompt[place + 1])
        elif (answer := int(token.item())) in ends:
            return
        else:
            yield answer


def _padded(tokens: list[int]) -> Tensor:
    """A piece of a prompt; what is past its end in the cache is written before it is read."""
    return Tensor(np.array(tokens + [0] * (CHUNK - len(tokens)), np.int32))


def _scalar(value: int) -> Tensor:
    """A number in memory, so that steps with other numbers are the same graph."""
    return Tensor(np.array(value, np.int32), dtype=dtypes.int32)
