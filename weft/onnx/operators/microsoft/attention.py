"""Attention as the exporters of transformers fuse it."""

from __future__ import annotations

import math
from typing import Any

from weft.ir.dtypes import dtypes
from weft.onnx.operators.attention import heads_apart, heads_together, repeated, rotated
from weft.onnx.table import MICROSOFT, op
from weft.tensor.tensor import Tensor


def attend(
    call: Any, q: Tensor, k: Tensor, v: Tensor, bias: Any, is_causal: bool, before: Any = None
) -> Tensor:
    """(batch, heads, time, size) of each; the result is (batch, time, heads · size)."""
    scale = call.get("scale") or 1.0 / math.sqrt(q.shape[-1])
    scores = q.matmul(k.transpose(2, 3)) * scale
    cap = call.get("softcap", 0.0)
    scores = (scores / cap).tanh() * cap if cap > 0 else scores
    rows, columns = scores.shape[-2:]
    if is_causal:
        start = columns - rows if before is None else before
        row = Tensor.arange(rows, dtype=dtypes.int64, device=q.device).reshape(rows, 1)
        column = Tensor.arange(columns, dtype=dtypes.int64, device=q.device)
        allowed = column <= row + start
        window = call.get("local_window_size", -1)
        if window > 0:
            allowed = allowed & (column > row + start - window)
        scores = allowed.where(scores, _LOW)
    if bias is not None:
        scores = scores + bias
    return heads_together(scores.softmax(-1).cast(v.dtype).matmul(v))


_LOW = -1e9


def _mask(call: Any, mask: Tensor | None, columns: int, dtype: Any) -> Any:
    """What a mask of any of its shapes adds to scores."""
    if mask is None:
        return None
    low = call.get("mask_filter_value", -10000.0)
    if mask.ndim == 1:  # the length of each sample
        column = Tensor.arange(columns, dtype=mask.dtype, device=mask.device)
        flags = column.unsqueeze(0) < mask[: mask.shape[0]].unsqueeze(1)
    else:
        flags = mask != 0
    shapes = {2: (1, 1), 3: (1,), 4: ()}
    if flags.ndim in shapes:
        for _ in shapes[flags.ndim]:
            flags = flags.unsqueeze(1)
    return flags.where(0.0, low).cast(dtype)


@op("Attention", domain=MICROSOFT)
def attention(
    call: Any,
    x: Tensor,
    weights: Tensor,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    past: Tensor | None = None,
    extra: Tensor | None = None,
) -> Any:
    """One product for queries, keys and values."""
    joined = x.matmul(weights) if bias is None else x.matmul(weights) + bias
    return attend_joined(call, joined, mask, past, extra)


def attend_joined(
    call: Any, joined: Tensor, mask: Tensor | None, past: Tensor | None, extra: Tensor | None
) -> Any:
    """Attention of queries, keys and values that stand side by side."""
    heads = call.get("num_heads")
    sizes = call.get("qkv_hidden_sizes") or [joined.shape[-1] // 3] * 3
    q, k, v = (heads_apart(each, heads) for each in joined.split(sizes, -1))
    if past is not None:
        k, v = past[0].cat(k, dim=2), past[1].cat(v, dim=2)
    added = _mask(call, mask, k.shape[2], q.dtype)
    if extra is not None:
        added = extra if added is None else added + extra
    result = attend(call, q, k, v, added, bool(call.get("unidirectional", 0)))
    return result, Tensor.stack(k, v)


@op("MultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(
    call: Any,
    q: Tensor,
    k: Tensor | None = None,
    v: Tensor | None = None,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    extra: Tensor | None = None,
    past_k: Tensor | None = None,
    past_v: Tensor | None = None,
) -> Any:
    heads = call.get("num_heads")
    if k is None:  # packed: (batch, time, heads, 3, size)
        q, k, v = (each.squeeze(3).transpose(1, 2) for each in q.split([1, 1, 1], 3))
    elif v is None:  # keys and values packed
        k, v = (each.squeeze(3).transpose(1, 2) for each in k.split([1, 1], 3))
        q = heads_apart(_biased(q, bias, 0), heads)
    else:
        q = heads_apart(_biased(q, bias, 0), heads)
        k = k if k.ndim == 4 else heads_apart(_biased(k, bias, 1), heads)
        v = v if v.ndim == 4 else heads_apart(_biased(v, bias, 2), heads)
    if past_k is not None and past_v is not None:
        k, v = past_k.cat(k, dim=2), past_v.cat(v, dim=2)
    added = _mask(call, mask, k.shape[2], q.dtype)
    if extra is not None:
        added = extra if added is None else added + extra
    return attend(call, q, k, v, added, bool(call.get("unidirectional", 0))), k, v


def _biased(x: Tensor, bias: Tensor | None, number: int) -> Tensor:
    if bias is None:
        return x
    width = x.shape[-1]
    start = 0 if number == 0 else bias.shape[0] - width if number == 2 else None
    start = bias.shape[0] // 3 if start is None else start
    return x + bias[start : start + width]


@op("GroupQueryAttention", domain=MICROSOFT, host=(6,))
def group_query_attention(
    call: Any,
    q: Tensor,
    k: Tensor | None,
    v: Tensor | None,
    past_k: Tensor | None = None,
    past_v: Tensor | None = None,
    lengths: Tensor | None = None,
    total: Any = None,
    cos: Tensor | None = None,
    sin: Tensor | None = None,
    positions: Tensor | None = None,
    extra: Tensor | None = None,
) -> Any:
    """Heads of queries share heads of keys and values; `lengths` are those of samples less 1."""
    heads, groups = call.get("num_heads"), call.get("kv_num_heads")
    if k is None or v is None:
        size = q.shape[-1] // (heads + 2 * groups)
        q, k, v = q.split([heads * size, groups * size, groups * size], -1)
    time = q.shape[1]
    q, k, v = heads_apart(q, heads), heads_apart(k, groups), heads_apart(v, groups)
    ends = None if lengths is None else lengths.reshape(-1).cast(dtypes.int64) + 1
    before = 0 if past_k is None else past_k.shape[2]
    if call.get("do_rotary", 0) and cos is not None and sin is not None:
        steps = Tensor.arange(time, dtype=dtypes.int64, device=q.device).reshape(1, time)
        start = before if ends is None or time > 1 else (ends - time).reshape(-1, 1)
        where = positions if positions is not None else (steps + start).expand(q.shape[0], time)
        is_interleaved = call.get("rotary_interleaved", 0)
        width = 2 * cos.shape[-1]
        q = rotated(q, cos, sin, where, width, is_interleaved)
        k = rotated(k, cos, sin, where, width, is_interleaved)
    if past_k is not None and past_v is not None and before:
        k, v = past_k.cat(k, dim=2), past_v.cat(v, dim=2)
    times = heads // groups
    added = extra
    if ends is not None:
        column = Tensor.arange(k.shape[2], dtype=dtypes.int64, device=q.device)
        inside = column.reshape(1, 1, 1, -1) < ends.reshape(-1, 1, 1, 1)
        own = inside.where(0.0, _LOW).cast(q.dtype)
        added = own if added is None else added + own
    result = attend(call, q, repeated(k, times), repeated(v, times), added, True)
    return result, k, v


@op("RotaryEmbedding", domain=MICROSOFT)
def rotary_embedding(call: Any, x: Tensor, positions: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    is_flat = x.ndim == 3
    width = call.get("rotary_embedding_dim", 0)
    size = width or 2 * cos.shape[-1]
    heads = call.get("num_heads", 0) or (x.shape[-1] // size if is_flat else 0)
    rows = heads_apart(x, heads) if is_flat else x
    time = rows.shape[2]
    where = positions.cast(dtypes.int64)
    if where.numel() == 1 and where.ndim == 1:  # the first position
        steps = Tensor.arange(time, dtype=dtypes.int64, device=x.device)
        where = (where + steps).reshape(1, time).expand(rows.shape[0], time)
    result = rotated(rows, cos, sin, where, width or size, call.get("interleaved", 0))
    scale = call.get("scale", 1.0)
    result = result * scale if scale != 1.0 else result
    return heads_together(result) if is_flat else result
