"""Attention with several heads, and the encoder layer of a transformer; names as in PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from weft.ir.dtypes import dtypes
from weft.nn.arguments import also_named
from weft.nn.initial import constant, require_positive
from weft.nn.linear import Linear
from weft.nn.module import Layer
from weft.nn.normalization import LayerNorm
from weft.support.errors import ArgumentError, NotSupported, ShapeError
from weft.tensor.checks import known
from weft.tensor.tensor import Tensor


class MultiHeadAttention(Layer):
    """softmax(q kᵀ / √size + mask) v in several heads, between products with weights.

    Sequences are (time, batch, embed_dim), or (batch, time, embed_dim) with `batch_first`.
    `in_proj_weight` (3 embed_dim, embed_dim) holds the products for query, key and value and is
    drawn as Glorot and Bengio say; its bias and that of `out_proj` start at 0.

    >>> attention = MultiHeadAttention(8, 2, batch_first=True)
    >>> x = Tensor.ones(3, 5, 8)
    >>> output, weights = attention(x, x, x)
    >>> output.shape, weights.shape
    ((3, 5, 8), (3, 5, 5))
    """

    _mode: bool | None = True

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        batch_first: bool = False,
    ) -> None:
        require_positive("MultiHeadAttention", embed_dim=embed_dim, num_heads=num_heads)
        if embed_dim % num_heads:
            raise ArgumentError(
                f"MultiHeadAttention: {num_heads} heads of {embed_dim} features",
                rule="num_heads divides embed_dim",
            )
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.batch_first = batch_first
        bound = math.sqrt(6 / (4 * embed_dim))
        shape = (3 * embed_dim, embed_dim)
        self.in_proj_weight = Tensor.uniform(*shape, low=-bound, high=bound, requires_grad=True)
        self.in_proj_bias = constant((3 * embed_dim,), 0) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias)
        if bias:
            self.out_proj.bias = constant((embed_dim,), 0)

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Return the output and the weights of the heads, averaged unless told otherwise.

        A bool mask is True where attention is forbidden, another one is added to the scores:
        `key_padding_mask` (batch, keys), `attn_mask` (queries, keys) or (batch · heads, queries,
        keys). The weights are those without dropout, and cost nothing unless they are read.
        """
        key = query if key is None else key
        value = key if value is None else value
        if query.ndim == 2:  # one sequence of its own
            axis = 0 if self.batch_first else 1
            query, key, value = (each.unsqueeze(axis) for each in (query, key, value))
            padding = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
            output, weights = self.forward(
                query,
                key,
                value,
                padding,
                need_weights,
                attn_mask,
                average_attn_weights,
                is_causal,
            )
            return output.squeeze(axis), None if weights is None else weights.squeeze(0)
        q, k, v = self._heads(query, key, value)
        if is_causal and attn_mask is None:
            attn_mask = _causal(known(q.shape[-2]), known(k.shape[-2]), query.device)
        mask = self._mask(attn_mask, key_padding_mask, known(q.shape[0]))
        rate = self.dropout if Tensor.training else 0.0
        mixed = q.scaled_dot_product_attention(k, v, mask, rate)  # (batch, heads, time, size)
        joined = mixed.transpose(1, 2).flatten(2)
        output = self.out_proj(joined if self.batch_first else joined.transpose(0, 1))
        if not need_weights:
            return output, None
        weights = _weights(q, k, mask)
        return output, weights.mean(1) if average_attn_weights else weights

    def _heads(self, query: Tensor, key: Tensor, value: Tensor) -> list[Tensor]:
        """Query, key and value as (batch, heads, time, size)."""
        made = []
        size = self.embed_dim
        for number, x in enumerate((query, key, value)):
            if x.ndim != 3 or x.shape[-1] != size:
                raise ShapeError(
                    f"MultiHeadAttention: an input of shape {x.shape}",
                    rule=f"an input is (time, batch, {size}); batch first with batch_first=True",
                )
            rows = slice(number * size, (number + 1) * size)
            bias = None if self.in_proj_bias is None else self.in_proj_bias[rows]
            projected = x.linear(self.in_proj_weight[rows].transpose(), bias)
            projected = projected if self.batch_first else projected.transpose(0, 1)
            made.append(projected.unflatten(-1, (self.num_heads, -1)).transpose(1, 2))
        return made

    def _mask(self, attn: Tensor | None, padding: Tensor | None, batch: int) -> Tensor | None:
        """Both masks as one: bool where attention is allowed, or numbers to add."""
        masks = []
        if attn is not None:
            masks.append(attn.unflatten(0, (batch, self.num_heads)) if attn.ndim == 3 else attn)
        if padding is not None:
            masks.append(padding.unsqueeze(1).unsqueeze(1))
        if not masks:
            return None
        if all(mask.dtype is dtypes.bool for mask in masks):
            forbidden = masks[0] if len(masks) == 1 else masks[0] | masks[1]
            return forbidden.logical_not()
        added = [m.where(-math.inf, 0.0).float() if m.dtype is dtypes.bool else m for m in masks]
        return added[0] if len(added) == 1 else added[0] + added[1]


def _causal(queries: int, keys: int, device: str) -> Tensor:
    """True above the diagonal: a step may not see what comes after it."""
    return Tensor.ones(queries, keys, dtype=dtypes.bool, device=device).triu(1)


def _weights(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    scores = q @ k.transpose(-2, -1) / math.sqrt(known(q.shape[-1]))
    if mask is not None:
        is_bool = mask.dtype is dtypes.bool
        scores = mask.where(scores, -math.inf) if is_bool else scores + mask
    return scores.softmax(-1)


_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": Tensor.relu,
    "gelu": lambda x: x.gelu("none"),
    "silu": Tensor.silu,
}


def activation_of(layer: str, activation: str | Callable[[Tensor], Tensor]) -> Any:
    """The function of a name, or the function itself."""
    if callable(activation):
        return activation
    if activation not in _ACTIVATIONS:
        raise ArgumentError(
            f"{layer}: unknown activation {activation!r}",
            rule=f"activation is a function, or one of {', '.join(_ACTIVATIONS)}",
        )
    return _ACTIVATIONS[activation]


class MultiheadAttention(MultiHeadAttention):
    """`MultiHeadAttention` with the arguments of PyTorch, in their order.

    >>> MultiheadAttention(8, 2, batch_first=True)(Tensor.ones(3, 5, 8))[0].shape
    (3, 5, 8)
    """

    @also_named()
    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
    ) -> None:
        others = {"kdim": kdim not in (None, embed_dim), "vdim": vdim not in (None, embed_dim)}
        others |= {"add_bias_kv": add_bias_kv, "add_zero_attn": add_zero_attn}
        for name, is_given in others.items():
            if is_given:
                raise NotSupported(
                    f"MultiheadAttention: {name} is given",
                    rule="keys and values have embed_dim features, and there are no others",
                )
        super().__init__(embed_dim, num_heads, dropout, bias, batch_first)


class TransformerEncoderLayer(Layer):
    """Attention of a sequence to itself, then two products, each beside a residual path.

    With `norm_first` each part normalizes its input, otherwise the sum behind it.

    >>> TransformerEncoderLayer(8, 2, 16, batch_first=True)(Tensor.ones(3, 5, 8)).shape
    (3, 5, 8)
    """

    _mode: bool | None = True

    @also_named()
    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
    ) -> None:
        self.activation = activation_of("TransformerEncoderLayer", activation)
        self.self_attn = MultiHeadAttention(d_model, nhead, dropout, bias, batch_first)
        self.linear1 = Linear(d_model, dim_feedforward, bias)
        self.linear2 = Linear(dim_feedforward, d_model, bias)
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias)
        self.dropout, self.norm_first = dropout, norm_first

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            output, _ = self.self_attn(
                x, x, x, src_key_padding_mask, False, src_mask, is_causal=is_causal
            )
            return output.dropout(self.dropout)  # type: ignore[no-any-return]

        if self.norm_first:
            src = src + attend(self.norm1(src))
            return src + self._feed_forward(self.norm2(src))
        src = self.norm1(src + attend(src))
        return self.norm2(src + self._feed_forward(src))  # type: ignore[no-any-return]

    def _feed_forward(self, x: Tensor) -> Tensor:
        inner = self.activation(self.linear1(x)).dropout(self.dropout)
        return self.linear2(inner).dropout(self.dropout)  # type: ignore[no-any-return]
