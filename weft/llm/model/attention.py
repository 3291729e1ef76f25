"""Attention over the pages of a cache: queries share heads of keys, windows and caps as told.

Keys and values of a page stand together, and the axis of pages is symbolic: one program serves
sequences of every length, and only pages in use are read.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from weft.llm.model.config import Config
from weft.llm.model.mlp import linear
from weft.llm.model.norms import rms_norm
from weft.llm.model.rope import rotated
from weft.llm.weights.layer import LayerWeights
from weft.tensor.tensor import Tensor


class Span(NamedTuple):
    """Where the tokens of a batch find keys and values, for layers of one window.

    `slots` (rows, time) is where each token's own go; `table` (rows, pages) names the pages that
    are read, and `allowed` (rows, time, pages, size) says what each token may attend to.
    """

    slots: Tensor
    table: Tensor
    allowed: Tensor


class Rotation(NamedTuple):
    """Cosines and sines (rows, time, pairs) of the tokens, and how pairs are ordered."""

    cosines: Tensor
    sines: Tensor
    is_interleaved: bool

    def __call__(self, x: Tensor) -> Tensor:
        return rotated(x, self.cosines, self.sines, self.is_interleaved)


def attention(
    x: Tensor,
    layer: LayerWeights,
    config: Config,
    memory: tuple[Tensor, Tensor],
    span: Span,
    rotation: Rotation | None,
) -> Tensor:
    """What tokens (rows, time, width) take from those before them; the memory gets their own.

    `memory` is keys and values, (pages, size, kv_heads, head_size) each.
    """
    q, k, v = projections(x, layer, config)
    if rotation is not None:
        q, k = rotation(q), rotation(k)
    rows, time = int(x.shape[0]), int(x.shape[1])
    for stored, fresh in zip(memory, (k, v), strict=True):
        flat = stored.flatten(0, 1)  # (slots, kv_heads, head_size)
        flat[span.slots.flatten()] = fresh.flatten(0, 1).cast(stored.dtype)
    keys, values = (stored[span.table] for stored in memory)
    q = q.unflatten(2, (config.kv_heads, -1)) * config.attention_scale
    mixed = mixture(q, keys, values, span.allowed, config.attention_softcap)
    return linear(mixed.reshape(rows, time, -1), layer, "attn_output")


def mixture(q: Tensor, keys: Tensor, values: Tensor, allowed: Tensor, cap: float) -> Tensor:
    """Values weighed by softmax: q (rows, time, groups, heads, size) over pages.

    Keys and values are (rows, pages, slots, groups, size).
    """
    is_prompt = int(q.shape[1]) > 1
    q = q.permute(0, 2, 1, 3, 4)  # (rows, groups, time, heads, size)
    keys, values = (each.permute(0, 3, 1, 2, 4) for each in (keys, values))
    if is_prompt:  # many queries read each key: the products want rows that are side by side
        q, keys, values = q.contiguous(), keys.contiguous(), values.contiguous()
    scores = Tensor.einsum("bgthd,bgnpd->bgthnp", q, keys)
    if cap:
        scores = (scores / cap).tanh() * cap
    scores = allowed.unsqueeze(1).unsqueeze(3).where(scores, -math.inf)
    powers = (scores - scores.max((-2, -1), keepdim=True)).exp()
    total = powers.sum((-2, -1), keepdim=True)
    if is_prompt:
        mixed = Tensor.einsum("bgthnp,bgnpd->bgthd", (powers / total).contiguous(), values)
    else:
        mixed = Tensor.einsum("bgthnp,bgnpd->bgthd", powers, values) / total.squeeze(-1)
    return mixed.permute(0, 2, 1, 3, 4)


def projections(x: Tensor, layer: LayerWeights, config: Config) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values as (rows, time, heads, head_size), with the norms of a file."""
    if "attn_qkv.weight" in layer:
        joined = linear(x, layer, "attn_qkv").unflatten(-1, (-1, config.head_size))
        first, second = config.heads, config.heads + config.kv_heads
        q, k, v = joined[:, :, :first], joined[:, :, first:second], joined[:, :, second:]
    else:
        q, k, v = (
            linear(x, layer, f"attn_{part}").unflatten(-1, (-1, config.head_size))
            for part in "qkv"
        )
    q = _normed(q, layer.get("attn_q_norm.weight"), config)
    return q, _normed(k, layer.get("attn_k_norm.weight"), config), v


def _normed(heads: Tensor, weight: Tensor | None, config: Config) -> Tensor:
    """Heads over their root mean square, each alone or all of a token together."""
    if weight is None:
        return heads
    if int(weight.shape[-1]) == config.head_size:
        return rms_norm(heads, weight, config.epsilon)
    return rms_norm(heads.flatten(-2), weight.flatten(), config.epsilon).reshape(heads.shape)
