"""Matrix products and attention."""

from __future__ import annotations

from typing import Any

from weft.interop.torch.table import Call, aten
from weft.ir.dtypes import dtypes
from weft.tensor.tensor import Tensor


@aten("mm", "bmm", "matmul", "mv")
def _matmul(call: Call, x: Tensor, y: Tensor) -> Tensor:
    return x.matmul(y)


@aten("dot")
def _dot(call: Call, x: Tensor, y: Tensor) -> Tensor:
    return (x * y).sum()


@aten("addmm", "baddbmm")
def _addmm(call: Call, bias: Tensor, x: Tensor, y: Tensor, beta: Any = 1, alpha: Any = 1) -> Any:
    product = x.matmul(y)
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product
    return product + (bias if beta == 1 else bias * beta)


def _scores(
    query: Tensor, key: Tensor, mask: Tensor | None, is_causal: bool, scale: float | None
) -> Tensor:
    scale = float(int(query.shape[-1])) ** -0.5 if scale is None else scale
    scores = query.matmul(key.transpose(-2, -1)) * scale
    if is_causal:
        rows, columns = int(scores.shape[-2]), int(scores.shape[-1])
        seen = Tensor.ones(rows, columns, dtype=dtypes.bool).tril()
        scores = seen.where(scores, -float("inf"))
    if mask is not None and mask.dtype is dtypes.bool:
        scores = mask.where(scores, -float("inf"))
    elif mask is not None:
        scores = scores + mask
    return scores


@aten("_scaled_dot_product_flash_attention_for_cpu")
def _attention(
    call: Call,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Attention, and the logarithm of the sum of each row's weights; rows that see nothing are 0.

    PyTorch asks for this operator where nothing is dropped.
    """
    scores = _scores(query, key, attn_mask, is_causal, scale)
    logs = scores.cast(_accumulates(query)).logsumexp(-1)
    weights = scores.softmax(-1)
    if attn_mask is not None:
        weights = weights.isnan().where(0, weights)
    return weights.matmul(value), logs


def _accumulates(x: Tensor) -> Any:
    return dtypes.float64 if x.dtype is dtypes.float64 else dtypes.float32


@aten("_scaled_dot_product_flash_attention_for_cpu_backward")
def _attention_slopes(
    call: Call,
    slope: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logs: Tensor,
    dropout: float,
    is_causal: bool,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients, whose weights are computed again from the logarithms of their sums."""
    scale = float(int(query.shape[-1])) ** -0.5 if scale is None else scale
    scores = _scores(query, key, attn_mask, is_causal, scale)
    weights = (scores - logs.cast(scores.dtype).unsqueeze(-1)).exp()
    if attn_mask is not None:
        weights = weights.isnan().where(0, weights)
    of_weights = slope.matmul(value.transpose(-2, -1))
    rest = (slope * out).sum(-1, keepdim=True)
    of_scores = weights * (of_weights - rest) * scale
    return (
        of_scores.matmul(key),
        of_scores.transpose(-2, -1).matmul(query),
        weights.transpose(-2, -1).matmul(slope),
    )


@aten("_cdist_forward")
def _cdist(call: Call, x: Tensor, y: Tensor, p: float, mode: Any = None) -> Tensor:
    return x.cdist(y, p)


def _projected_heads(x: Tensor, weight: Tensor, bias: Tensor, heads: int) -> list[Tensor]:
    """Query, key and value, each (batch, heads, time, size)."""
    batch, time, size = map(int, x.shape)
    found = (x.matmul(weight.transpose(0, 1)) + bias).reshape(
        (batch, time, 3, heads, size // heads)
    )
    return [found.select(2, number).transpose(1, 2) for number in range(3)]


def _seen(mask: Tensor, kind: int | None) -> Tensor:
    """What a mask lets each query see; PyTorch's masks are true where nothing is seen."""
    if kind == 1:  # (batch, time), of keys
        mask = mask.unsqueeze(1).unsqueeze(1)
    return mask.logical_not() if mask.dtype is dtypes.bool else mask


def _self_attention(
    x: Tensor, heads: int, weights: Any, mask: Tensor | None, mask_kind: int | None
) -> tuple[Tensor, Tensor]:
    """Attention of a sequence to itself, and its weights."""
    qkv_weight, qkv_bias, out_weight, out_bias = weights
    query, key, value = _projected_heads(x, qkv_weight, qkv_bias, heads)
    seen = None if mask is None else _seen(mask, mask_kind)
    shares = _scores(query, key, seen, False, None).softmax(-1)
    found = shares.matmul(value).transpose(1, 2).reshape(x.shape)
    return found.matmul(out_weight.transpose(0, 1)) + out_bias, shares


@aten("_native_multi_head_attention")
def _multi_head_attention(
    call: Call, query: Tensor, key: Tensor, value: Tensor, size: int, heads: int, *rest: Any
) -> tuple[Tensor, Tensor | None]:
    *weights, mask, needs_weights, averages, mask_kind = _with_defaults(
        rest, (None,) * 4, (None, True, True, None)
    )
    found, shares = _self_attention(query, heads, weights, mask, mask_kind)
    if not needs_weights:
        return found, None
    return found, shares.mean(1) if averages else shares


def _with_defaults(given: Any, first: Any, last: Any) -> list[Any]:
    return [*given, *(*first, *last)[len(given) :]]


@aten("_transformer_encoder_layer_fwd")
def _encoder_layer(
    call: Call,
    x: Tensor,
    size: int,
    heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    out_weight: Tensor,
    out_bias: Tensor,
    uses_gelu: bool,
    norm_first: bool,
    eps: float,
    *rest: Any,
) -> Any:
    """What PyTorch makes of a whole layer of an encoder where no gradient is asked for."""
    *norms, up, up_bias, down, down_bias, mask, kind = _with_defaults(
        rest, (None,) * 8, (None,) * 2
    )
    weights = (qkv_weight, qkv_bias, out_weight, out_bias)

    def normed(y: Tensor, number: int) -> Any:
        return y.native_layer_norm((size,), norms[2 * number], norms[2 * number + 1], eps)[0]

    def widened(y: Tensor) -> Any:
        y = y.matmul(up.transpose(0, 1)) + up_bias
        y = y.gelu(approximate="none") if uses_gelu else y.relu()
        return y.matmul(down.transpose(0, 1)) + down_bias

    if norm_first:
        x = x + _self_attention(normed(x, 0), heads, weights, mask, kind)[0]
        return x + widened(normed(x, 1))
    x = normed(x + _self_attention(x, heads, weights, mask, kind)[0], 0)
    return normed(x + widened(x), 1)
