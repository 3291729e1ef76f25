"""Attention: the product of scaled scores, and all of a multi-head layer as one function."""

from __future__ import annotations

from weft.nn.functional.dropout import dropout
from weft.nn.functional.linear import linear
from weft.tensor.tensor import Tensor


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(q kᵀ · scale + mask) v."""
    if scale is not None:
        query = query * (scale * float(int(query.shape[-1])) ** 0.5)
    with Tensor.train(dropout_p > 0 or Tensor.training):
        return query.scaled_dot_product_attention(
            key, value, attn_mask, dropout_p, is_causal, enable_gqa
        )


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention over heads of (time, batch, size): projections, scores, and the way out."""
    is_single = query.ndim == 2
    if is_single:
        query, key, value = (each.unsqueeze(1) for each in (query, key, value))
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, size = map(int, query.shape)
    if use_separate_proj_weight:
        weights = [q_proj_weight, k_proj_weight, v_proj_weight]
    else:
        weights = list(in_proj_weight.chunk(3)) if in_proj_weight is not None else [None] * 3
    biases = [None] * 3 if in_proj_bias is None else list(in_proj_bias.chunk(3))
    q, k, v = (
        x if weight is None else linear(x, weight, bias)
        for x, weight, bias in zip((query, key, value), weights, biases, strict=True)
    )
    mask = _mask(attn_mask, q)
    padding = _mask(key_padding_mask, q)
    if bias_k is not None and bias_v is not None:
        k = k.cat(bias_k.expand((1, batch, int(k.shape[2]))), dim=0)
        v = v.cat(bias_v.expand((1, batch, int(v.shape[2]))), dim=0)
        mask, padding = _longer(mask), _longer(padding)
    q, k, v = (_heads(each, num_heads) for each in (q, k, v))  # (batch, heads, time, size)
    k, v = (
        k if static_k is None else static_k.reshape((batch, num_heads, *static_k.shape[1:])),
        v if static_v is None else static_v.reshape((batch, num_heads, *static_v.shape[1:])),
    )
    if add_zero_attn:
        k, v = k.pad((0, 0, 0, 1)), v.pad((0, 0, 0, 1))
        mask, padding = _longer(mask), _longer(padding)
    scores = (q * float(int(q.shape[-1])) ** -0.5).matmul(k.transpose(-1, -2))
    if mask is not None:
        scores = scores + (mask if mask.ndim == 2 else mask.reshape(scores.shape))
    if padding is not None:
        scores = scores + padding.reshape((batch, 1, 1, -1))
    shares = scores.softmax(-1)
    used = dropout(shares, dropout_p, training) if dropout_p else shares
    mixed = used.matmul(v).permute((2, 0, 1, 3)).reshape((length, batch, size))
    result = linear(mixed, out_proj_weight, out_proj_bias)
    seen = (used.mean(1) if average_attn_weights else used) if need_weights else None
    if is_single:
        result = result.squeeze(1)
        seen = None if seen is None else seen.squeeze(0)
    return result, seen


def _heads(x: Tensor, heads: int) -> Tensor:
    time, batch, size = map(int, x.shape)
    return x.reshape((time, batch, heads, size // heads)).permute((1, 2, 0, 3))


def _mask(mask: Tensor | None, like: Tensor) -> Tensor | None:
    """A mask to add: of bools, minus infinity where it is set."""
    if mask is None or mask.is_floating_point():
        return mask
    return mask.where(-float("inf"), 0.0).cast(like.dtype)


def _longer(mask: Tensor | None) -> Tensor | None:
    return None if mask is None else mask.pad((0, 1))
