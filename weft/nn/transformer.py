"""Stacks of transformer layers, and the decoder layer; arguments and state as in PyTorch."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from weft.nn.arguments import also_named
from weft.nn.attention import MultiHeadAttention, TransformerEncoderLayer, activation_of
from weft.nn.containers import ModuleList
from weft.nn.init import xavier_uniform_
from weft.nn.linear import Linear
from weft.nn.module import Layer
from weft.nn.normalization import LayerNorm
from weft.support.errors import ShapeError
from weft.tensor.tensor import Tensor

Activation = str | Callable[[Tensor], Tensor]


class TransformerDecoderLayer(Layer):
    """Attention of a sequence to itself, then to a memory, then two products.

    Each stands beside a residual path. With `norm_first` each part normalizes its input, otherwise
    the sum behind it.

    >>> layer = TransformerDecoderLayer(8, 2, 16, batch_first=True)
    >>> layer(Tensor.ones(3, 5, 8), Tensor.ones(3, 7, 8)).shape
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
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
    ) -> None:
        self.activation = activation_of("TransformerDecoderLayer", activation)
        self.self_attn = MultiHeadAttention(d_model, nhead, dropout, bias, batch_first)
        self.multihead_attn = MultiHeadAttention(d_model, nhead, dropout, bias, batch_first)
        self.linear1 = Linear(d_model, dim_feedforward, bias)
        self.linear2 = Linear(dim_feedforward, d_model, bias)
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias)
        self.norm3 = LayerNorm(d_model, layer_norm_eps, bias=bias)
        self.dropout, self.norm_first = dropout, norm_first

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        def to_itself(x: Tensor) -> Tensor:
            given = (tgt_key_padding_mask, False, tgt_mask)
            output, _ = self.self_attn(x, x, x, *given, is_causal=tgt_is_causal)
            return output.dropout(self.dropout)  # type: ignore[no-any-return]

        def to_memory(x: Tensor) -> Tensor:
            given = (memory_key_padding_mask, False, memory_mask)
            output, _ = self.multihead_attn(x, memory, memory, *given, is_causal=memory_is_causal)
            return output.dropout(self.dropout)  # type: ignore[no-any-return]

        def feed_forward(x: Tensor) -> Tensor:
            inner = self.activation(self.linear1(x)).dropout(self.dropout)
            return self.linear2(inner).dropout(self.dropout)  # type: ignore[no-any-return]

        parts = ((self.norm1, to_itself), (self.norm2, to_memory), (self.norm3, feed_forward))
        for norm, part in parts:
            tgt = tgt + part(norm(tgt)) if self.norm_first else norm(tgt + part(tgt))
        return tgt


class TransformerEncoder(Layer):
    """So many copies of an encoder layer one behind the other, and a normalization.

    >>> layer = TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> TransformerEncoder(layer, num_layers=2)(Tensor.ones(3, 5, 8)).shape
    (3, 5, 8)
    """

    _mode: bool | None = True

    def __init__(
        self,
        encoder_layer: Any,
        num_layers: int,
        norm: Any = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, bool(is_causal))
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Layer):
    """So many copies of a decoder layer one behind the other, and a normalization.

    >>> layer = TransformerDecoderLayer(8, 2, 16, batch_first=True)
    >>> TransformerDecoder(layer, 2)(Tensor.ones(3, 5, 8), Tensor.ones(3, 7, 8)).shape
    (3, 5, 8)
    """

    _mode: bool | None = True

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Any = None) -> None:
        self.layers = ModuleList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        for layer in self.layers:
            tgt = layer(tgt, memory, *masks, bool(tgt_is_causal), memory_is_causal)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Layer):
    """An encoder of one sequence, and a decoder of another that reads what the encoder made.

    >>> model = Transformer(8, 2, 1, 1, 16, batch_first=True)
    >>> model(Tensor.ones(3, 5, 8), Tensor.ones(3, 7, 8)).shape
    (3, 7, 8)
    """

    _mode: bool | None = True

    @also_named()
    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
    ) -> None:
        size, options = (d_model, nhead, dim_feedforward, dropout, activation), {
            "layer_norm_eps": layer_norm_eps,
            "batch_first": batch_first,
            "norm_first": norm_first,
            "bias": bias,
        }  # fmt: skip
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        self.encoder = custom_encoder
        if custom_encoder is None:
            layer: Any = TransformerEncoderLayer(*size, **options)
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias)
            self.encoder = TransformerEncoder(layer, num_encoder_layers, norm)
        self.decoder = custom_decoder
        if custom_decoder is None:
            layer = TransformerDecoderLayer(*size, **options)
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias)
            self.decoder = TransformerDecoder(layer, num_decoder_layers, norm)
        for weight in self.parameters():
            if weight.ndim > 1:
                xavier_uniform_(weight)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        batch = 0 if self.batch_first else 1
        if src.ndim != tgt.ndim or (src.ndim == 3 and src.shape[batch] != tgt.shape[batch]):
            raise ShapeError(
                f"Transformer: sources of shape {src.shape} and targets of shape {tgt.shape}",
                rule="both are batches of the same size",
            )
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        paddings = (tgt_key_padding_mask, memory_key_padding_mask)
        return self.decoder(  # type: ignore[no-any-return]
            tgt, memory, tgt_mask, memory_mask, *paddings, tgt_is_causal, memory_is_causal
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """A mask that is added: -inf above the diagonal, and 0 elsewhere.

        >>> Transformer.generate_square_subsequent_mask(2).tolist()
        [[0.0, -inf], [0.0, 0.0]]
        """
        return Tensor.full((sz, sz), -math.inf, device=device, dtype=dtype).triu(1)
