"""Attention of the default domain, rotary embeddings, linear attention."""

from __future__ import annotations

import math
from typing import Any

from weft.ir.dtypes import dtypes
from weft.ir.sizes import minus, most
from weft.onnx.elements import dtype_of
from weft.onnx.table import PREVIEW, op
from weft.tensor.tensor import Tensor
from weft.tensor.trace.user_scans import scan


def heads_apart(x: Tensor, heads: int) -> Tensor:
    """(batch, time, heads · size) as (batch, heads, time, size)."""
    batch, time, width = x.shape
    return x.reshape(batch, time, heads, width // heads).transpose(1, 2)


def heads_together(x: Tensor) -> Tensor:
    """(batch, heads, time, size) as (batch, time, heads · size)."""
    batch, heads, time, size = x.shape
    return x.transpose(1, 2).reshape(batch, time, heads * size)


def repeated(x: Tensor, times: int) -> Tensor:
    """Each head of keys or values for as many heads of queries."""
    if times == 1:
        return x
    batch, heads, time, size = x.shape
    wide = x.reshape(batch, heads, 1, time, size).expand(batch, heads, times, time, size)
    return wide.reshape(batch, heads * times, time, size)


@op("Attention", since=23)
def attention(
    call: Any,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    past_k: Tensor | None = None,
    past_v: Tensor | None = None,
    lengths: Tensor | None = None,
) -> Any:
    is_flat = q.ndim == 3
    if is_flat:
        q = heads_apart(q, call.get("q_num_heads"))
        k, v = (heads_apart(each, call.get("kv_num_heads")) for each in (k, v))
    before = 0
    if past_k is not None and past_v is not None:
        before = past_k.shape[2]
        k, v = past_k.cat(k, dim=2), past_v.cat(v, dim=2)
    scale = call.get("scale") or 1.0 / math.sqrt(q.shape[-1])
    times = q.shape[1] // k.shape[1]
    keys, values = repeated(k, times), repeated(v, times)
    root = math.sqrt(scale)
    scores = (q * root).cast(q.dtype).matmul((keys * root).cast(q.dtype).transpose(2, 3))
    result, kept = _weighed(call, scores, values, mask, lengths, before)
    if is_flat:
        result = heads_together(result)
    return result.cast(q.dtype), k, v, kept


def _weighed(
    call: Any, scores: Tensor, values: Tensor, mask: Any, lengths: Any, before: int
) -> tuple[Tensor, Tensor]:
    """Softmax of the scores times the values, and the scores as the call wants them."""
    mode, cap = call.get("qk_matmul_output_mode", 0), call.get("softcap", 0.0)
    bias = _bias(call, scores, mask, lengths, before)
    capped = (scores / cap).tanh() * cap if cap > 0 else scores
    masked = capped if bias is None else capped + bias
    stages = (scores, capped, masked)
    precision = call.get("softmax_precision")
    wide = masked.cast(dtype_of(precision)) if precision else masked
    is_empty = wide.max(-1, True) == -float("inf")
    weights = is_empty.where(0, is_empty.where(0, wide).softmax(-1)).cast(scores.dtype)
    kept = weights if mode == 3 else stages[mode]
    return weights.matmul(values), kept


def _bias(call: Any, scores: Tensor, mask: Any, lengths: Any, before: int) -> Any:
    """What is added to the scores: 0 or -inf by masks, or the numbers of a float mask."""
    rows, columns = scores.shape[-2:]
    low = -float("inf")
    bias = None
    if mask is not None:
        missing = minus(columns, mask.shape[-1])
        if mask.dtype is dtypes.bool:
            bias = mask.where(0.0, low).cast(scores.dtype)
        else:
            bias = mask.cast(scores.dtype)
        if most(missing) > 0:
            bias = bias.pad([*[(0, 0)] * (mask.ndim - 1), (0, missing)], value=low)
    column = Tensor.arange(columns, dtype=dtypes.int64, device=scores.device)
    position = Tensor.arange(rows, dtype=dtypes.int64, device=scores.device).reshape(rows, 1)
    allowed: Any = None
    if lengths is not None:
        ends = lengths.cast(dtypes.int64).reshape(-1, 1, 1, 1)
        allowed = column.reshape(1, 1, 1, columns) < ends
        position = position + ends - rows  # the queries are the last of their sample
    position = position + before
    left, right = call.get("left_window_size", -1), call.get("right_window_size", -1)
    limits = [
        column <= position if call.get("is_causal", 0) else None,
        column >= position - left if left >= 0 else None,
        column <= position + right if right >= 0 else None,
    ]
    for limit in limits:
        if limit is not None:
            allowed = limit if allowed is None else allowed & limit
    if allowed is None:
        return bias
    extra = allowed.where(0.0, low).cast(scores.dtype)
    return extra if bias is None else allowed.where(bias, low).cast(scores.dtype)


@op("FlexAttention", domain=PREVIEW)
def flex_attention(call: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    from weft.onnx.execute import run_graph

    def changed(name: str, x: Tensor) -> Tensor:
        graph = call.get(name)
        if graph is None:
            return x
        (result,) = run_graph(graph, {graph.inputs[0].name: x}, call.run, call.scope)
        return call.run.tensor(result)

    scale = call.get("scale") or 1.0 / math.sqrt(q.shape[-1])
    precision = call.get("softmax_precision")
    wide = dtype_of(precision) if precision else dtypes.float32
    wide = dtypes.float64 if q.dtype is dtypes.float64 and not precision else wide
    times = q.shape[1] // k.shape[1]
    keys, values = repeated(k, times), repeated(v, times)
    scores = q.cast(wide).matmul(keys.cast(wide).transpose(2, 3)) * scale
    weights = changed("prob_mod", changed("score_mod", scores).softmax(-1))
    return weights.matmul(values.cast(wide)).cast(q.dtype)


@op("RotaryEmbedding", since=23)
def rotary_embedding(
    call: Any, x: Tensor, cos: Tensor, sin: Tensor, positions: Tensor | None = None
) -> Tensor:
    is_flat = x.ndim == 3
    rows = heads_apart(x, call.get("num_heads")) if is_flat else x
    result = rotated(
        rows, cos, sin, positions, call.get("rotary_embedding_dim", 0), call.get("interleaved", 0)
    )
    return heads_together(result) if is_flat else result


def rotated(
    x: Tensor, cos: Tensor, sin: Tensor, positions: Any, width: int, is_interleaved: int
) -> Tensor:
    """Pairs of (batch, heads, time, size) rotated by the angles of their positions."""
    width = width or x.shape[-1]
    if positions is not None:
        cos, sin = cos[positions], sin[positions]  # (batch, time, width / 2)
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    first, rest = x[..., :width], x[..., width:]
    if is_interleaved:
        pairs = first.reshape(*first.shape[:-1], width // 2, 2)
        a, b = pairs[..., 0], pairs[..., 1]
        real, imag = cos * a - sin * b, sin * a + cos * b
        result = Tensor.stack(real, imag, dim=-1).reshape(first.shape)
    else:
        a, b = first.chunk(2, -1)
        result = (cos * a - sin * b).cat(sin * a + cos * b, dim=-1)
    return (result.cat(rest, dim=-1) if rest.shape[-1] else result).cast(x.dtype)


@op("LinearAttention")
def linear_attention(
    call: Any,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    past: Tensor | None = None,
    decay: Tensor | None = None,
    beta: Tensor | None = None,
) -> Any:
    """A state of keys by values, updated for each token and read by its queries."""
    q_heads, heads = call.get("q_num_heads"), call.get("kv_num_heads")
    rule = call.get("update_rule", "gated_delta")
    batch, count = q.shape[:2]
    wide = dtypes.float32 if q.dtype.itemsize < 4 else q.dtype
    queries = heads_apart(q.cast(wide), q_heads)
    keys, values = heads_apart(k.cast(wide), heads), heads_apart(v.cast(wide), heads)
    scale = call.get("scale", 0.0) or 1.0 / math.sqrt(queries.shape[-1])
    shape = (batch, heads, keys.shape[-1], values.shape[-1])
    state = Tensor.zeros(*shape, dtype=wide, device=q.device) if past is None else past.cast(wide)
    gates = None if decay is None else heads_apart(decay.cast(wide), heads).exp()
    rates = None
    if beta is not None:
        rates = beta.cast(wide).transpose(1, 2).expand(batch, heads, count)
    is_gated, is_delta = "gated" in rule and gates is not None, "delta" in rule
    rows: dict[str, Any] = {"q": queries, "k": keys, "v": values}
    rows.update({"gate": gates} if is_gated else {})
    rows.update({"rate": rates.unsqueeze(-1)} if is_delta and rates is not None else {})

    def one(state: Any, row: Any) -> Any:
        key, value = row["k"], row["v"]
        state = state * row["gate"].unsqueeze(-1) if is_gated else state
        if "rate" in row:
            value = (value - (state * key.unsqueeze(-1)).sum(2)) * row["rate"]
        state = state + key.unsqueeze(-1) * value.unsqueeze(2)
        query = row["q"].reshape(batch, heads, q_heads // heads, -1)
        return state, query.matmul(state) * scale

    state, steps = scan(one, state, {name: each.movedim(2, 0) for name, each in rows.items()})
    result = steps.transpose(0, 1)  # (batch, time, heads, group, size)
    result = result.reshape(batch, count, q_heads * values.shape[-1]).cast(q.dtype)
    return result, state.cast(q.dtype if past is None else past.dtype)
