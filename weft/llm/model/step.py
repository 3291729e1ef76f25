"""The jitted step that runs a batch of a model over the memory of one paged cache.

A `Step` is made for a model and a cache and never changes: what it reads is its facts, which are
values, the graphs of weights and the memory of both. So it is closed to the JIT, which need not
watch it and takes what another process traced from disk. A step is traced once for each padded
shape of a batch; lengths are symbolic, so a longer sequence runs the same program.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.ir.build import variable
from weft.ir.uop import UOp
from weft.llm.cache.paged import PAGE, PagedCache
from weft.llm.model.attention import Rotation, Span, attention
from weft.llm.model.batch import Batch, SpanTables, Wanted
from weft.llm.model.config import Config, Rope
from weft.llm.model.mlp import mlp
from weft.llm.model.norms import norm
from weft.llm.model.rope import angles
from weft.llm.model.router import mixture_of_experts
from weft.llm.weights.layer import LayerWeights
from weft.rewrite.module_path import part
from weft.support.errors import ArgumentError
from weft.tensor.jit.closed import Closed
from weft.tensor.jit.jit import jit
from weft.tensor.tensor import Tensor


class Step:
    """A model over the memory of one cache; its attributes cannot be set."""

    config: Config
    weights: LayerWeights
    windows: tuple[int, ...]
    memory: tuple[tuple[Tensor, Tensor], ...]  # keys and values of each layer
    ropes: tuple[Rope, ...]

    def __init__(self, config: Config, weights: LayerWeights, cache: PagedCache) -> None:
        if cache.config != config:
            raise ArgumentError("forward: the cache was made for another model")
        memory = tuple(zip(cache.keys, cache.values, strict=True))
        parts = {"windows": cache.spans, "memory": memory, "ropes": _ropes(config)}
        vars(self).update(config=config, weights=weights, **parts)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a step never changes, so {name} cannot be set")

    def closed(self) -> Closed:
        """All that a step reads, by value but for memory."""
        facts, constants = self.weights.described
        tensors = [tensor for pair in self.memory for tensor in pair]
        return Closed(repr((self.config, self.windows, facts)), constants, tensors)

    def run(self, batch: Batch) -> Tensor:
        used = [_pages(index, each) for index, each in enumerate(batch.spans)]
        widths = tuple(each.table.shape[1] for each in batch.spans)
        shape = batch.tokens.shape
        numbers = Tensor(_numbers(batch, shape[0]))
        rotations = Tensor(self._rotations(batch)) if self.ropes else None
        return self.step(numbers, rotations, used, shape, widths, batch.wanted)

    def _rotations(self, batch: Batch) -> Any:
        """Cosines and sines of every way of positions, one behind the other."""
        parts = [angles(rope, batch.positions, self.config.context) for rope in self.ropes]
        return np.concatenate([table.ravel() for pair in parts for table in pair])

    @jit(closed=closed)
    def step(
        self,
        numbers: Tensor,
        rotations: Tensor | None,
        used: list[UOp],
        shape: tuple[int, int],
        widths: tuple[int, ...],
        wanted: Wanted,
    ) -> Tensor:
        """A batch by its numbers: one array of integers and one of angles, so two copies."""
        height = shape[0]
        cut = _Cut(numbers)
        tokens, positions, last = cut(*shape), cut(*shape), cut(height)
        spans = []
        for window, width, pages in zip(self.windows, widths, used, strict=True):
            tables = cut(*shape), cut(height, width), cut(height)
            spans.append(_span(window, positions, tables, pages))
        pairs = [rope.size // 2 for rope in self.ropes]
        angle = _Cut(rotations) if rotations is not None else None
        cosines = [(angle(*shape, n), angle(*shape, n)) for n in pairs] if angle else []
        return self._result(tokens, last, spans, cosines, wanted)

    def _result(
        self,
        tokens: Tensor,
        last: Tensor,
        spans: list[Span],
        cosines: list[tuple[Tensor, Tensor]],
        wanted: Wanted,
    ) -> Tensor:
        x = self.weights["token_embd.weight"][tokens]
        if self.config.embedding_scale != 1:
            x = x * self.config.embedding_scale
        for number in range(self.config.layers):
            with part(f"Model.layers.{number}"):
                x = self._layer(number, x, spans, cosines)
        if wanted == "last":
            x = x[Tensor.arange(int(x.shape[0])), last].unsqueeze(1)
        x = self._norm(x, self.weights, "output_norm")
        return x if wanted == "hidden" else self._head(x, wanted)

    def _layer(
        self, number: int, x: Tensor, spans: list[Span], cosines: list[tuple[Tensor, Tensor]]
    ) -> Tensor:
        c, layer = self.config, self.weights.layer(number)
        span = spans[self.windows.index(c.windows[number])]
        rope = c.rope_of(number)
        rotation = Rotation(*cosines[self.ropes.index(rope)], rope.interleaved) if rope else None
        h = self._norm(x, layer, "attn_norm")
        h = attention(h, layer, c, self.memory[number], span, rotation)
        has_own = "ffn_norm.weight" in layer
        if has_own and "post_attention_norm.weight" in layer:
            h = self._norm(h, layer, "post_attention_norm")
        x = x + self._scaled(h)
        h = self._norm(x, layer, "ffn_norm" if has_own else "post_attention_norm")
        h = self._inner(h, layer)
        if "post_ffw_norm.weight" in layer:
            h = self._norm(h, layer, "post_ffw_norm")
        return (x + self._scaled(h)).contiguous()

    def _inner(self, h: Tensor, layer: LayerWeights) -> Tensor:
        c = self.config
        if c.experts is None or "ffn_gate_inp.weight" not in layer:
            return mlp(h, layer, c.activation)
        mixed = mixture_of_experts(h.flatten(0, 1), layer, c.experts, c.activation)
        return mixed.reshape(h.shape)

    def _scaled(self, x: Tensor) -> Tensor:
        return x if self.config.residual_scale == 1 else x * self.config.residual_scale

    def _norm(self, x: Tensor, weights: LayerWeights, name: str) -> Tensor:
        bias = weights.get(f"{name}.bias")
        h = norm(self.config.norm, x, weights[f"{name}.weight"], bias, self.config.epsilon)
        return h if int(x.shape[0]) * int(x.shape[1]) == 1 else h.contiguous()

    def _head(self, x: Tensor, wanted: Wanted) -> Tensor:
        has_own = "output.weight" in self.weights
        head = self.weights["output.weight" if has_own else "token_embd.weight"]
        logits: Tensor = x @ head.T
        if self.config.logit_scale != 1:
            logits = logits * self.config.logit_scale
        cap = self.config.logit_softcap
        if cap:
            logits = (logits / cap).tanh() * cap
        return logits.squeeze(1) if wanted == "last" else logits


class _Cut:
    """Tensors of some shapes, one behind the other in one array."""

    def __init__(self, flat: Tensor) -> None:
        self.flat = flat
        self.offset = 0

    def __call__(self, *shape: int) -> Tensor:
        begin, self.offset = self.offset, self.offset + math.prod(shape)
        return self.flat[begin : self.offset].reshape(shape)


def _numbers(batch: Batch, height: int) -> Any:
    """All integers of a batch, in the order in which a step cuts them."""
    last = np.zeros(height, np.int32)
    last[: len(batch.counts)] = np.array(batch.counts, np.int32) - 1
    tables = [part for each in batch.spans for part in (each.slots, each.table, each.first)]
    return np.concatenate(
        [part.ravel() for part in (batch.tokens, batch.positions, last, *tables)]
    )


def _ropes(config: Config) -> tuple[Rope, ...]:
    """The ways of positions that layers have, each once."""
    ropes = (config.rope_of(number) for number in range(config.layers))
    return tuple(dict.fromkeys(rope for rope in ropes if rope is not None))


def _pages(index: int, tables: SpanTables) -> UOp:
    """How many pages are read, as a size that may change."""
    return variable(f"pages{index}", 1, tables.table.shape[1]).bind(tables.used)


def _span(
    window: int, positions: Tensor, tables: tuple[Tensor, Tensor, Tensor], pages: Any
) -> Span:
    slots, table, first = tables
    own = positions.unsqueeze(-1).unsqueeze(-1)  # (rows, time, 1, 1)
    numbers = (first.unsqueeze(1) + Tensor.arange(pages)).unsqueeze(-1)  # (rows, pages, 1)
    theirs = (numbers * PAGE + Tensor.arange(PAGE)).unsqueeze(1)  # (rows, 1, pages, PAGE)
    allowed = theirs <= own
    if window:
        allowed = allowed & (theirs > own - window)
    return Span(slots, table[:, :pages], allowed)
